package journal

import (
	"fmt"
	"strings"
)

// DamageError tells what is wrong with a log, where, and what to do. It wraps
// ErrCorrupt or ErrGap, and the cause if there is one.
type DamageError struct {
	Kind   error  // ErrCorrupt or ErrGap
	Graph  string // "" if the damage is not in one graph
	Where  string // the record, key or file
	What   string // what was expected and what was found
	Remedy string // what the operator should do
	Cause  error  // may be nil
}

// Error returns one line with all parts.
func (e *DamageError) Error() string {
	var b strings.Builder
	b.WriteString(e.Kind.Error())
	if e.Graph != "" {
		fmt.Fprintf(&b, ": graph %q", e.Graph)
	}
	for _, part := range []string{e.Where, e.What} {
		if part != "" {
			b.WriteString(": ")
			b.WriteString(part)
		}
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	if e.Remedy != "" {
		b.WriteString("; ")
		b.WriteString(e.Remedy)
	}
	return b.String()
}

// Unwrap returns the kind and the cause.
func (e *DamageError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}
