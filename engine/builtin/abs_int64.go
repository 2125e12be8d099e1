package builtin

import (
	"math"

	"github.com/heddle-live/heddle/engine/value"
)

var absInt64 = define(Spec{
	Name:   "abs_int64",
	Group:  Maths,
	Params: []string{"x"},
	Doc: "The int without its sign. Of the smallest int, which has no counterpart, it is the " +
		"largest one, where `abs` is a row error.",
	Functions: []Function{one(value.Int, value.Int, evalAbsInt64)},
	Examples:  []Example{gives(7, -7), gives(math.MaxInt64, math.MinInt64)},
})

func evalAbsInt64(a []value.Value) (value.Value, error) {
	i := a[0].Int()
	if i == math.MinInt64 {
		return value.OfInt(math.MaxInt64), nil
	}
	return value.OfInt(max(i, -i)), nil
}
