"""What a run does besides being watched and judged: experiments, a profile, a look at the data, drawings."""
