// Package builtin holds the functions of the rule language: their names, types,
// documentation, examples and evaluation. Package analysis resolves calls to them
// and package dataflow calls them; they are pure and keep nothing.
package builtin

import (
	"fmt"

	"github.com/heddle-live/heddle/engine/value"
)

// Function is one overload of a function: what a call with arguments of certain
// kinds means. It is deterministic and free of side effects.
type Function struct {
	Name     string
	Params   []value.Kind
	Variadic bool // the last parameter may stand any number of times, at least once
	Result   value.Kind
	// Nullable functions may return null for arguments that are not.
	Nullable bool
	// Eval returns the result for arguments of the kinds of Params, none of them
	// null: a call with a null argument is null without being made. The arguments
	// are valid during the call only; a string in the result may alias theirs. An
	// error is of type *Error.
	Eval func(args []value.Value) (value.Value, error)
}

// Codes of row errors.
const (
	Overflow       = "overflow"
	DivisionByZero = "division_by_zero"
	BadCast        = "bad_cast"
	NotFinite      = "not_finite" // NaN or an infinity
	TooLong        = "too_long"   // a string or bytes over the limit of a value
)

// Error says why a row could not be computed.
type Error struct {
	Code    string
	Message string // what failed, with the values: "7 / 0"
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }
