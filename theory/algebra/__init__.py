"""Algebra under supervision: one door to SymPy, few exceptions.

SymPy is called through `door`. A call counts against the budget of the question at hand
(`door.until`, `door.unless`), and ends in one of three ways: with its value; with `Undecided`
where SymPy raises (it does so in many ways on expressions it was not made for); with `Unreachable`
once the budget is spent. An error raised by code of our own, also within a function that we hand to
SymPy, is a bug and passes through as it is: it must never look like an honest "undecided".

How a call is ended
-------------------
SymPy looks at no clock, and how long it takes cannot be told from the size of what it is given:
factoring a polynomial of 700 terms takes seconds or hours. A child process could be killed safely,
but every expression would travel there and back, and a process costs more than most whole
decisions. To refuse by size alone either loses verdicts of today or keeps no budget. So a
thread watches (`door.watched`): once the budget is spent it raises an exception in the thread
that is inside SymPy (`PyThreadState_SetAsyncExc`). Why that is safe:

* It is raised inside the door only. The watcher raises while it holds the lock under which the door
  notes that the thread is inside. On its way out the door takes that lock, notes that it is
  outside, and clears an exception that is still pending. Between the end of the call and that note
  the interpreter runs no instruction at which it would deliver one.
* No code of ours that holds a lock runs inside the door: balls refuse to be evaluated there.
* What SymPy keeps beyond a call is: caches, written when a call has returned; facts about
  expressions, each written when it is proved, whose absence means unknown; three parameters and
  mpmath's precision, which are put back; nothing else. SymPy 1.14 has no `except:` without a class,
  no lock, no registry that is filled on the way.
* The exception is no `Exception`, so that no handler in SymPy takes it for one of its own.

Where an interpreter has no such exception, the clock is looked at between calls only.
"""
