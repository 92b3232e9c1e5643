"""Small programs that print what they see, or end in some way: the launcher must not change either."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest
from both_ways import both_ways

SEES = {
    "argv": "import sys; print(sys.argv)",
    "path": "import sys; print(sys.path)",
    "main_attributes": """
        '''A docstring.'''
        x: int = 3
        for name, value in vars().copy().items():
            print(name, type(value), value if isinstance(value, (str, dict)) else '')
    """,
    "main_module": """
        import sys
        main = sys.modules["__main__"]
        print(main.__dict__ is globals(), __name__, __file__, __spec__, __package__, __loader__.name)
        print(__builtins__ is __import__("builtins"), repr(main))
    """,
    "working_folder": "import os; print(os.getcwd(), sorted(os.listdir()))",
    "neighbour_import": "import neighbour; print(neighbour.word, neighbour.__file__)",
    "stdin": "import sys; print(input(), '|', sys.stdin.read())",
    "output_is_not_wrapped": """
        import sys
        print(type(sys.stdout), sys.stdout.encoding, sys.stdout.line_buffering, sys.stdout is sys.__stdout__)
        print("to stderr", file=sys.stderr)
    """,
    "unicode_output": "print('žluťoučký 猫 🐈')",
    "own_source": """
        import inspect
        def f():
            return "found me"
        print(inspect.getsource(f), inspect.getfile(f))
    """,
    "encoding_line": b"# -*- coding: latin-1 -*-\nprint('caf\xe9', ascii('\xe9'))\n",
    "byte_order_mark": b"\xef\xbb\xbfprint('after the mark')\n",
    "flags_do_not_leak": """
        def f(x: undefined_name_is_fine_only_with_the_future_import): pass
    """,
    "warnings": """
        import warnings
        def old():
            warnings.warn("old", DeprecationWarning, stacklevel=2)
        old()
        warnings.warn("user")
        print(len(warnings.filters))
    """,
    "pickle": """
        import pickle
        class Point:
            def __init__(self, x): self.x = x
        data = pickle.dumps(Point(3))
        print(b"__main__" in data, pickle.loads(data).x)
    """,
    "signal_handlers": """
        import signal
        for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP):
            print(s, signal.getsignal(s))
    """,
    "hooks": """
        import sys, threading
        print(sys.excepthook, threading.excepthook, sys.unraisablehook, sys.gettrace(), sys.getprofile())
    """.replace("print(", "print(*[repr(x).split(' at ')[0] for x in (").replace("())", "())])"),
}

ENDS = {
    "falls_off_the_end": "print('done')",
    "exit_zero": "import sys; sys.exit(0)",
    "exit_number": "import sys; sys.exit(7)",
    "exit_large_number": "import sys; sys.exit(2**70)",
    "exit_negative": "import sys; sys.exit(-1)",
    "exit_none": "import sys; sys.exit()",
    "exit_true": "import sys; sys.exit(True)",
    "exit_text": "import sys; print('out'); sys.exit('a reason')",
    "exit_object": "import sys; sys.exit(['no', 'idea'])",
    "exit_empty_text": "import sys; sys.exit('')",
    "raise_system_exit": "raise SystemExit(4)",
    "builtin_exit": "exit(5)",
    "hard_exit": "import os; print('x', flush=True); os._exit(9)",
    "exec_another": """
        import os, sys
        os.execv(sys.executable, [sys.executable, "-c", "print('replaced')"])
    """,
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)",
    "own_term_handler": """
        import os, signal, sys
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to stop"))
        os.kill(os.getpid(), signal.SIGTERM)
    """,
    "interrupted": """
        import atexit, os, signal, time
        atexit.register(print, "goodbye")
        def train():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        train()
    """,
    "interrupt_caught": """
        import os, signal, time
        try:
            os.kill(os.getpid(), signal.SIGINT); time.sleep(5)
        except KeyboardInterrupt:
            print("saved")
    """,
    "uncaught": """
        def f(n):
            return 1 / n
        print("before")
        f(0)
    """,
    "chained": """
        def load():
            try:
                {}["lr"]
            except KeyError as error:
                raise ValueError("no learning rate") from error
        try:
            load()
        except ValueError:
            int("x")
    """,
    "context_suppressed": """
        try:
            1 / 0
        except ZeroDivisionError:
            raise RuntimeError("clean") from None
    """,
    "circular_chain": """
        a, b = ValueError("a"), ValueError("b")
        a.__context__, b.__context__ = b, a
        raise a
    """,
    "notes_and_groups": """
        import sys
        if sys.version_info < (3, 11):
            raise ValueError("no groups yet")
        def fail(x):
            try:
                1 / x
            except ZeroDivisionError as e:
                e.add_note("a note")
                return e
        raise ExceptionGroup("several", [fail(0), ExceptionGroup("inner", [fail(0), TypeError("t")])])
    """,
    "library_error": "import json; json.loads('{')",
    "assertion": "assert 1 == 2, 'not equal'",
    "own_exception_class": """
        class Diverged(Exception): pass
        raise Diverged("loss is nan")
    """,
    "own_excepthook": """
        import sys
        def hook(kind, error, tb):
            print("mine:", kind.__name__, error, tb.tb_frame.f_code.co_name, sys.exc_info())
        sys.excepthook = hook
        1 / 0
    """,
    "failing_excepthook": """
        import sys
        def hook(*_): raise KeyError("hook broke")
        sys.excepthook = hook
        1 / 0
    """,
    "exiting_excepthook": """
        import sys
        def hook(*_): sys.exit(6)
        sys.excepthook = hook
        1 / 0
    """,
    "no_excepthook": "import sys; del sys.excepthook; 1 / 0",
    "syntax_error": "print('never')\nx = = 1\n",
    "indentation_error": "if True:\nprint('x')\n",
    "imports_syntax_error": "import broken_neighbour",
    "import_missing": "import surely_not_a_module_42",
    "unterminated_text": "x = 'abc\n",
    "atexit_order": """
        import atexit
        atexit.register(print, "first registered")
        atexit.register(print, "second registered")
        print("main ends")
    """,
    "atexit_after_exception": """
        import atexit
        atexit.register(print, "cleanup")
        raise RuntimeError("x")
    """,
    "threads_are_waited_for": """
        import atexit, threading, time
        def train():
            time.sleep(0.3)
            print("trained")
        atexit.register(print, "atexit")
        threading.Thread(target=train).start()
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        print("main ends")
    """,
    "idle_thread_pool": """
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(2)
        print(pool.submit(sum, [1, 2]).result())
    """,
    "exit_in_thread": """
        import sys, threading
        threading.Thread(target=sys.exit, args=(3,)).start()
    """,
    "error_in_thread": """
        import threading
        def work(): raise ValueError("in a thread")
        threading.Thread(target=work, name="worker").start()
    """,
    "finaliser_at_exit": """
        class Loud:
            def __del__(self): print("gone")
        keep = Loud()
    """,
    "forked_child_returns": """
        import os, sys
        if os.fork():
            os.wait()
            print("parent")
        else:
            print("child")
    """,
    "unraisable": """
        class Bad:
            def __del__(self): raise ValueError("in del")
        import sys
        sys.unraisablehook = lambda told: print(told.exc_value, told.exc_traceback.tb_lineno)
        Bad()
    """,
    "closed_stdout": "import sys; sys.stdout.close()",
}


def write(folder: Path, name: str, source: str | bytes) -> str:
    if isinstance(source, str):
        source = dedent(source).encode()
    (folder / name).write_bytes(source)
    return name


@pytest.mark.parametrize("name", SEES)
def test_program_sees_what_it_sees_under_python(name: str, tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("word = 'hello'")
    script = write(tmp_path, "train.py", SEES[name])
    plain, launched = both_ways(tmp_path, script, "--lr", "0.1", "--", "-m", "ünï", stdin="one\ntwo\n")
    assert plain.stdout or plain.stderr
    assert launched == plain


@pytest.mark.parametrize("name", ENDS)
def test_program_ends_as_under_python(name: str, tmp_path: Path) -> None:
    (tmp_path / "broken_neighbour.py").write_text("def f(:\n  pass\n")
    plain, launched = both_ways(tmp_path, write(tmp_path, "train.py", ENDS[name]))
    assert launched == plain


def test_endless_recursion_gives_the_same_traceback_but_for_the_depth(tmp_path: Path) -> None:
    plain, launched = both_ways(tmp_path, write(tmp_path, "train.py", "def f(): f()\nf()\n"))
    assert "RecursionError" in launched.stderr
    assert (launched.code, launched.stdout) == (plain.code, plain.stdout)

    def without_count(text: str) -> list[str]:
        return [line for line in text.splitlines() if "Previous line repeated" not in line]

    assert without_count(launched.stderr) == without_count(plain.stderr)


@pytest.mark.parametrize("script", ["nested/train.py", "./nested/../nested/train.py", "link.py"])
def test_first_path_entry_is_the_scripts_real_folder(script: str, tmp_path: Path) -> None:
    (tmp_path / "nested").mkdir()
    write(tmp_path, "nested/train.py", "import sys; print(sys.path[0], sys.argv, __file__)")
    (tmp_path / "link.py").symlink_to(tmp_path / "nested/train.py")
    plain, launched = both_ways(tmp_path, script)
    assert str(tmp_path / "nested") in plain.stdout
    assert launched == plain


@pytest.mark.parametrize("flag", ["-O", "-B", "-u", "-Werror", "-Xdev", "-P"])
def test_interpreter_flags_act_alike(flag: str, tmp_path: Path) -> None:
    if flag == "-P" and sys.version_info < (3, 11):
        flag = "-E"  # -P does not exist there
    source = """
        import sys, warnings
        print(sys.flags, sys.warnoptions, __debug__, sys.path)
        assert False, "only without -O"
    """
    plain, launched = both_ways(tmp_path, write(tmp_path, "train.py", source), flags=(flag,))
    assert launched == plain


def test_compiled_script_runs(tmp_path: Path) -> None:
    import py_compile

    write(tmp_path, "train.py", "import sys; print(sys.argv, __file__, __loader__.__class__)")
    py_compile.compile(str(tmp_path / "train.py"), cfile=str(tmp_path / "train.pyc"))
    plain, launched = both_ways(tmp_path, "train.pyc", "x")
    assert "train.pyc" in plain.stdout
    assert launched == plain


def test_missing_script_is_refused_as_python_refuses_it(tmp_path: Path) -> None:
    plain, launched = both_ways(tmp_path, "nowhere.py")
    assert plain.code == 2
    assert launched == plain


SAYS_ALL = """
    import sys
    for name, value in vars().copy().items():
        print(name, type(value), value if isinstance(value, (str, dict)) else '')
    print(__spec__.name if __spec__ else None, sys.argv, sys.path)
    class Here: pass
    import pickle
    print(pickle.loads(pickle.dumps(Here)))
    if "fail" in sys.argv:
        def deeper(): raise ValueError("asked to")
        deeper()
"""


@pytest.mark.parametrize("arguments", [[], ["fail"]])
@pytest.mark.parametrize(
    "module", ["single", "package", "package.sub", "package.inner.leaf", "nowhere", "package.no"]
)
def test_module_runs_as_with_dash_m(module: str, arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "package/inner").mkdir(parents=True)
    write(tmp_path, "package/__init__.py", "import sys; print('init sees', sys.argv)")
    write(tmp_path, "package/inner/__init__.py", "")
    for name in ("single.py", "package/__main__.py", "package/sub.py", "package/inner/leaf.py"):
        write(tmp_path, name, SAYS_ALL)
    plain, launched = both_ways(tmp_path, "-m", module, *arguments)
    assert launched == plain


@pytest.mark.parametrize("arguments", [[], ["fail"]])
@pytest.mark.parametrize("where", ["folder", "./folder", "app.zip", "empty"])
def test_folder_and_zip_with_a_main_run(where: str, arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder").mkdir()
    write(tmp_path, "folder/__main__.py", SAYS_ALL)
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.write(tmp_path / "folder/__main__.py", "__main__.py")
    plain, launched = both_ways(tmp_path, where, *arguments)
    assert launched == plain
