package builtin

import (
	"errors"
	"strconv"
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

var toFloat = define(Spec{
	Name:   "to_float",
	Group:  Casts,
	Params: []string{"x"},
	Doc: "A float: the nearest one of an int, or of a decimal number in a string (`7`, `-1.5`, " +
		"`2e-3`).",
	Functions: []Function{
		one(value.Float, value.Float,
			func(a []value.Value) (value.Value, error) { return a[0], nil }),
		one(value.Int, value.Float, func(a []value.Value) (value.Value, error) {
			return float(number(a[0]), "to_float", a)
		}),
		one(value.String, value.Float, floatOfString),
	},
	Examples: []Example{
		gives(7.0, 7), gives(-1.5, "-1.5"), gives(0.002, "2e-3"), gives(0.0, "-0"),
		fails(BadCast, "1.5 m"), fails(BadCast, "inf"), fails(BadCast, "0x10"),
		fails(NotFinite, "1e999"),
	},
})

func floatOfString(a []value.Value) (value.Value, error) {
	s := a[0].Str()
	f, err := strconv.ParseFloat(s, 64)
	switch {
	// ParseFloat reads inf, nan and hexadecimal numbers too.
	case strings.Trim(s, "0123456789+-.eE") != "" || strings.ContainsAny(s, "xX_"):
		return value.Value{}, failure(BadCast, "to_float", a)
	case errors.Is(err, strconv.ErrRange):
		return value.Value{}, failure(NotFinite, "to_float", a)
	case err != nil:
		return value.Value{}, failure(BadCast, "to_float", a)
	}
	return float(f, "to_float", a)
}
