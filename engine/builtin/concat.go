package builtin

import (
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

var concat = define(Spec{
	Name:   "concat",
	Group:  Text,
	Params: []string{"s", "..."},
	Doc:    "All arguments one after the other. What is no string needs `to_string`.",
	Functions: []Function{
		{
			Params: []value.Kind{value.String}, Variadic: true, Result: value.String,
			Eval: func(a []value.Value) (value.Value, error) {
				return evalConcat(value.OfString, a)
			},
		},
		{
			Params: []value.Kind{value.Bytes}, Variadic: true, Result: value.Bytes,
			Eval: func(a []value.Value) (value.Value, error) {
				return evalConcat(value.OfBytes, a)
			},
		},
	},
	Examples: []Example{
		gives("a-b", "a", "-", "b"), gives("a", "a"),
		gives(value.OfBytes("\x01\x02"), value.OfBytes("\x01"), value.OfBytes("\x02")),
	},
})

func evalConcat(of func(string) value.Value, args []value.Value) (value.Value, error) {
	n := 0
	for _, a := range args {
		n += len(a.Str())
	}
	if n > LengthMax {
		return value.Value{}, failure(TooLong, "concat", args)
	}
	var text strings.Builder
	text.Grow(n)
	for _, a := range args {
		text.WriteString(a.Str())
	}
	return of(text.String()), nil
}
