package builtin

import (
	"time"
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

// fourTimes returns a test of four timestamps.
func fourTimes(eval evaluation) Function {
	k := value.Timestamp
	return Function{Params: []value.Kind{k, k, k, k}, Result: value.Bool, Eval: eval}
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

// oclock returns the timestamp of a full hour of one day, for examples with many.
func oclock(hour int) value.Value {
	const midnight, hourMillis = 1_795_996_800_000, 3_600_000
	return value.OfTimestamp(int64(midnight + hour*hourMillis))
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

// whole returns the functions of one number that make it whole; an int is so already.
func whole(name string, f func(float64) float64) []Function {
	return []Function{
		one(value.Float, value.Float, func(a []value.Value) (value.Value, error) {
			return float(f(a[0].Float()), name, a)
		}),
		one(value.Int, value.Int, func(a []value.Value) (value.Value, error) { return a[0], nil }),
	}
}

// choice returns the functions that return one of two arguments, for each kind and
// for an int, taken as a float, with a float.
func choice(eval evaluation) []Function {
	var functions []Function
	for _, k := range []value.Kind{
		value.Int, value.Float, value.String, value.Bool, value.Bytes, value.Timestamp,
	} {
		functions = append(functions, two(k, k, k, eval))
	}
	// A float that an int becomes is always finite.
	asFloats := func(a []value.Value) (value.Value, error) {
		x, _ := value.OfFloat(number(a[0]))
		y, _ := value.OfFloat(number(a[1]))
		return eval([]value.Value{x, y})
	}
	return append(functions, two(value.Int, value.Float, value.Float, asFloats),
		two(value.Float, value.Int, value.Float, asFloats))
}

// timePart returns the function that takes a number from a time. It is for the whole
// range of timestamps, which package time spans.
func timePart(part func(time.Time) int) []Function {
	return []Function{one(value.Timestamp, value.Int, func(a []value.Value) (value.Value, error) {
		return value.OfInt(int64(part(time.UnixMilli(a[0].Int()).UTC()))), nil
	})}
}

// text returns the result of a call, which must not be too long.
func text(s, name string, args []value.Value) (value.Value, error) {
	if len(s) > LengthMax {
		return value.Value{}, failure(TooLong, name, args)
	}
	return value.OfString(s), nil
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
