package builtin

import (
	"math"
	"slices"

	"github.com/heddle-live/heddle/engine/value"
)

var multiply = define(Spec{
	Name:   "*",
	Group:  Operators,
	Params: []string{"a", "b"},
	Doc:    "The product. With a float on one side, an int on the other is taken as a float.",
	Functions: slices.Concat(
		[]Function{two(value.Int, value.Int, value.Int, multiplyInts)},
		mixed(value.Float, func(a []value.Value) (value.Value, error) {
			return float(number(a[0])*number(a[1]), "*", a)
		}),
	),
	Examples: []Example{
		gives(-6, 2, -3),
		gives(1.0, 2, 0.5),
		gives(0.0, -1.0, 0),
		fails(Overflow, math.MinInt64, -1),
		fails(NotFinite, 1e300, 1e300),
	},
})

func multiplyInts(a []value.Value) (value.Value, error) {
	x, y := a[0].Int(), a[1].Int()
	product := x * y
	if x != 0 && (product/x != y || x == -1 && y == math.MinInt64) {
		return value.Value{}, failure(Overflow, "*", a)
	}
	return value.OfInt(product), nil
}
