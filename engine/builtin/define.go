package builtin

import (
	"unicode/utf8"

	"github.com/heddle-live/heddle/engine/value"
)

// LengthMax is the length of the longest string or bytes that a function returns.
const LengthMax = 1 << 20

// define completes a Spec.
func define(s Spec) *Spec {
	for i := range s.Functions {
		s.Functions[i].Name = s.Name
	}
	return &s
}

// evaluation is the work of a function; see Function.Eval.
type evaluation = func(args []value.Value) (value.Value, error)

// one returns a function of one argument.
func one(param, result value.Kind, eval evaluation) Function {
	return Function{Params: []value.Kind{param}, Result: result, Eval: eval}
}

// two returns a function of two arguments.
func two(a, b, result value.Kind, eval evaluation) Function {
	return Function{Params: []value.Kind{a, b}, Result: result, Eval: eval}
}

// gives returns an example of a call with a result. Arguments and result are values,
// or Go's int, float64, string and bool for those.
func gives(want any, args ...any) Example {
	return Example{Args: literals(args), Want: literal(want)}
}

// fails returns an example of a call that is a row error.
func fails(code string, args ...any) Example {
	return Example{Args: literals(args), Fails: code}
}

func literals(args []any) []value.Value {
	values := make([]value.Value, len(args))
	for i, a := range args {
		values[i] = literal(a)
	}
	return values
}

func literal(a any) value.Value {
	switch a := a.(type) {
	case value.Value:
		return a
	case int:
		return value.OfInt(int64(a))
	case float64:
		if v, ok := value.OfFloat(a); ok {
			return v
		}
	case string:
		return value.OfString(a)
	case bool:
		return value.OfBool(a)
	}
	panic("builtin: an example holds what is no value")
}

// at returns the timestamp of a text.
func at(text string) value.Value {
	ms, ok := value.ParseTime(text)
	if !ok {
		panic("builtin: an example holds what is no time")
	}
	return value.OfTimestamp(ms)
}

// failure returns the row error of a call.
func failure(code, name string, args []value.Value) error {
	return &Error{Code: code, Message: callText(name, args)}
}

// float returns the result of a call, which must be finite.
func float(f float64, name string, args []value.Value) (value.Value, error) {
	v, ok := value.OfFloat(f)
	if !ok {
		return value.Value{}, failure(NotFinite, name, args)
	}
	return v, nil
}

// number returns an int or float argument as a float.
func number(v value.Value) float64 {
	if v.Kind() == value.Int {
		return float64(v.Int())
	}
	return v.Float()
}

// numeric returns a function of one number, a float or an int that is taken as one,
// with a float as result.
func numeric(name string, f func(float64) float64) []Function {
	eval := func(a []value.Value) (value.Value, error) {
		return float(f(number(a[0])), name, a)
	}
	return []Function{
		one(value.Float, value.Float, eval), one(value.Int, value.Float, eval),
	}
}

// mixed returns the functions of two numbers of which one at least is a float; an int
// is taken as a float.
func mixed(result value.Kind, eval evaluation) []Function {
	return []Function{
		two(value.Float, value.Float, result, eval),
		two(value.Int, value.Float, result, eval),
		two(value.Float, value.Int, result, eval),
	}
}

// runeStart returns the largest start of a character, or end, of s up to offset.
func runeStart(s string, offset int) int {
	for offset > 0 && offset < len(s) && !utf8.RuneStart(s[offset]) {
		offset--
	}
	return offset
}
