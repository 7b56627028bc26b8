package jinja

import (
	"errors"
	"fmt"
)

// The sentinels that an [Error] wraps: by when and why a template failed.
var (
	// ErrSyntax: the source is not a template. Reported by Parse.
	ErrSyntax = errors.New("syntax error")
	// ErrUnsupported: the template asks for something that this engine refuses
	// by name, such as include, import, extends or lipsum.
	ErrUnsupported = errors.New("unsupported construct")
	// ErrRuntime: rendering failed as it does in Python (TypeError, ValueError,
	// ZeroDivisionError, ...).
	ErrRuntime = errors.New("runtime error")
	// ErrUndefined: an undefined value was used other than by printing,
	// iterating or testing it. It is also an ErrRuntime.
	ErrUndefined = fmt.Errorf("%w: undefined value", ErrRuntime)
	// ErrSecurity: the sandbox forbids the call. It is also an ErrRuntime.
	ErrSecurity = fmt.Errorf("%w: forbidden by the sandbox", ErrRuntime)
	// ErrRaised: the template called raise_exception; Error.Message is what it
	// said.
	ErrRaised = errors.New("raised by the template")
	// ErrLimit: a limit of [Limits] was met.
	ErrLimit = errors.New("limit exceeded")
	// ErrInternal: a fault of the engine itself, which should be reported.
	ErrInternal = errors.New("internal error")
	// ErrData: the data given to FromJSON or Render is not usable.
	ErrData = errors.New("bad data")
)

// Error says where and why a template failed.
type Error struct {
	Name      string // the name given to Parse
	Line      int    // line of the template, from 1; 0 where there is none
	Construct string // the tag, filter, test, function or exception concerned; may be empty
	Message   string // the reason, in the words Python uses where it has some
	Kind      error  // one of the sentinels, or the error of the context
}

// Error formats the name, the line, the kind and the reason.
func (e *Error) Error() string {
	s := e.Name
	if e.Line > 0 {
		s = fmt.Sprintf("%s:%d", s, e.Line)
	}
	s += ": " + e.Kind.Error()
	if e.Construct != "" {
		s += ": " + e.Construct
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Unwrap gives the sentinel.
func (e *Error) Unwrap() error { return e.Kind }

// failure is the value of the panic that carries an Error from the depth of an
// evaluation to the exported call that began it, which recovers it. It never
// leaves the package.
type failure struct{ err *Error }

func raise(kind error, construct, format string, args ...any) {
	msg := format
	if len(args) > 0 {
		msg = fmt.Sprintf(format, args...)
	}
	panic(failure{&Error{Construct: construct, Message: msg, Kind: kind}})
}

func typeError(format string, args ...any)  { raise(ErrRuntime, "TypeError", format, args...) }
func valueError(format string, args ...any) { raise(ErrRuntime, "ValueError", format, args...) }
func overflowError(format string, args ...any) {
	raise(ErrRuntime, "OverflowError", format, args...)
}

func limitError(construct, format string, args ...any) { raise(ErrLimit, construct, format, args...) }

// catch turns a panic of this package into the error of an exported call.
// line gives the line that was being worked on.
func catch(name string, line func() int, err *error) {
	r := recover()
	if r == nil {
		return
	}
	f, ok := r.(failure)
	if !ok {
		f = failure{&Error{Kind: ErrInternal, Message: fmt.Sprint(r)}}
	}
	f.err.Name = name
	if f.err.Line == 0 {
		f.err.Line = line()
	}
	*err = f.err
}
