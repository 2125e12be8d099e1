package builtin

import (
	"math"

	"github.com/heddle-live/heddle/engine/value"
)

var abs = define(Spec{
	Name:   "abs",
	Group:  Maths,
	Params: []string{"x"},
	Doc:    "The number without its sign.",
	Functions: []Function{
		one(value.Int, value.Int, absInt), one(value.Float, value.Float, absFloat),
	},
	Examples: []Example{
		gives(7, -7), gives(1.5, -1.5), fails(Overflow, math.MinInt64),
	},
})

func absInt(a []value.Value) (value.Value, error) {
	i := a[0].Int()
	if i == math.MinInt64 {
		return value.Value{}, failure(Overflow, "abs", a)
	}
	return value.OfInt(max(i, -i)), nil
}

func absFloat(a []value.Value) (value.Value, error) {
	return float(math.Abs(number(a[0])), "abs", a)
}
