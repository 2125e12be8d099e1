package builtin

import (
	"strings"

	"github.com/heddle-live/heddle/engine/suggest"
	"github.com/heddle-live/heddle/engine/value"
)

// Spec is a function with all that is known of it. Each has a file of its own.
type Spec struct {
	Name      string
	Group     Group
	Params    []string // names for the documentation
	Doc       string   // one or more sentences
	Functions []Function
	Examples  []Example
}

// Group is a chapter of the reference page.
type Group string

// The groups, in the order of the reference page.
const (
	Operators Group = "Operators"
	Text      Group = "Text and bytes"
	Maths     Group = "Numbers"
	Choice    Group = "Smaller and larger"
	Casts     Group = "Conversions"
	Time      Group = "Time"
)

// Example is a call and what it gives: Want, or a row error with the code Fails.
// Examples are tests.
type Example struct {
	Args  []value.Value
	Want  value.Value
	Fails string
}

// Call spells the example's call as a program does.
func (s *Spec) Call(e *Example) string { return callText(s.Name, e.Args) }

// Specs returns all functions and operators in the order of the reference page. The
// caller must not change them.
func Specs() []*Spec { return all }

// Lookup returns the Spec of the function or operator called name, or nil.
func Lookup(name string) *Spec {
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Names returns the names of all functions in the order of the reference page,
// without the operators.
func Names() []string {
	var names []string
	for _, s := range all {
		if s.Group != Operators {
			names = append(names, s.Name)
		}
	}
	return names
}

// Resolve returns the function that a call of name with arguments of these kinds
// means. An argument of kind value.Null, which is the literal null, fits everywhere.
// The error is a *ResolveError. The same call always gives the same pointer.
func Resolve(name string, args []value.Kind) (*Function, error) {
	s := Lookup(name)
	if s == nil {
		return nil, unknown(name)
	}
	for i := range s.Functions {
		if s.Functions[i].accepts(args) {
			return &s.Functions[i], nil
		}
	}
	return nil, &ResolveError{Name: name, Spec: s, Args: args}
}

// accepts reports whether a call with arguments of these kinds is one of f.
func (f *Function) accepts(args []value.Kind) bool {
	if len(args) < len(f.Params) || len(args) > len(f.Params) && !f.Variadic {
		return false
	}
	for i, kind := range args {
		if kind != value.Null && kind != f.Params[min(i, len(f.Params)-1)] {
			return false
		}
	}
	return true
}

// ResolveError says why a call means no function.
type ResolveError struct {
	Name    string
	Spec    *Spec  // nil if there is no function of this name
	Nearest string // the name that was probably meant, or ""
	Hint    string // what to do instead, or ""
	Args    []value.Kind
}

func (e *ResolveError) Error() string {
	if e.Spec == nil {
		return "unknown function " + e.Name
	}
	var takes []string
	for i := range e.Spec.Functions {
		takes = append(takes, e.Spec.Functions[i].signature())
	}
	return e.Name + " does not take " + kindsText(e.Args, false) + "; there is " +
		strings.Join(takes, ", ")
}

func unknown(name string) *ResolveError {
	e := &ResolveError{Name: name}
	if name == "time_now" || name == "now" {
		e.Hint = "rules have no clock, because the same facts must always give the same rows: " +
			"declare `clock every 10s` and read the time from clock(Now)"
		return e
	}
	e.Nearest = suggest.Nearest(name, Names())
	return e
}

// signature spells the types of f: "(string, int) -> string", "int + int -> int".
func (f *Function) signature() string {
	result := " -> " + f.Result.String()
	if f.Nullable {
		result += "?"
	}
	if isOperator(f.Name) {
		return f.Params[0].String() + " " + f.Name + " " + f.Params[1].String() + result
	}
	return kindsText(f.Params, f.Variadic) + result
}

func kindsText(kinds []value.Kind, variadic bool) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.String()
	}
	if variadic {
		names = append(names, "...")
	}
	return "(" + strings.Join(names, ", ") + ")"
}

func isOperator(name string) bool { return len(name) == 1 && strings.Contains("+-*/%", name) }

// callText spells a call as a program does.
func callText(name string, args []value.Value) string {
	texts := make([]string, len(args))
	for i, v := range args {
		texts[i] = valueText(v)
	}
	if isOperator(name) {
		return strings.Join(texts, " "+name+" ")
	}
	return name + "(" + strings.Join(texts, ", ") + ")"
}

// valueText spells v, a long text by its beginning only.
func valueText(v value.Value) string {
	const bytesMax = 64
	if len(v.Str()) <= bytesMax {
		return v.String()
	}
	if v.Kind() == value.Bytes {
		return value.OfBytes(v.Str()[:bytesMax]).String() + "..."
	}
	return value.OfString(v.Str()[:runeStart(v.Str(), bytesMax)]).String() + "..."
}
