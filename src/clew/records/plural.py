"""Counts in words: `1 step`, `1,234 steps`."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 class`, `3 classes`; without `plural`, the noun gets an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or f'{noun}s'}"
