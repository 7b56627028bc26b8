// Package team is the worker team of the CPU backend: a fixed set of workers that walk a program's steps together.
//
// # Contract
//
// A program is a list of [Step]. [Team.Run] runs the steps in order: every task of a step is done exactly once, on any
// worker, and all of them are done before the next step begins. What a task of step i wrote is visible to every task of
// step i+1 (and to Step.Tasks of step i+1). The calling goroutine is worker 0; a team of one runs everything inline.
//
// # How it works
//
// Workers enter a run once and cross no lock between steps. One 64-bit word holds the step that is open: how many units
// (chunks of tasks) it has and how many are claimed. A worker claims with one atomic add; a claim below the unit count is
// valid and keeps the step open until it is reported done. The step ends when all its tasks are reported, not when all
// workers have arrived: a worker that the operating system has taken off its core, or that has not yet woken, holds up
// nobody unless it holds a task. The worker that reports the last task opens the next step; steps of no task are skipped
// and steps of one task are run on the spot, so a chain of them costs no barrier and no wake-up.
//
// A worker without work spins with pauses for a bounded time, lets other goroutines in, and then parks. The same wait
// serves between steps and between runs. Parked workers are woken only for a step with two or more units, two by the
// opener and two more by each that wakes.
//
// # Caveats
//
// Tasks must not call Run, Close or EnsureScratch of their own team (they would wait for themselves). A task must not
// block on another task. Worker 0 is a goroutine of the caller, so nothing here may rely on thread identity.
package team
