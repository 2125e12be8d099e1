package builtin

import (
	"math"
	"slices"

	"github.com/heddle-live/heddle/engine/value"
)

var remainder = define(Spec{
	Name:   "%",
	Group:  Operators,
	Params: []string{"a", "b"},
	Doc: "What the division leaves, with the sign of `a`. With a float on one side, an int on " +
		"the other is taken as a float.",
	Functions: slices.Concat(
		[]Function{two(value.Int, value.Int, value.Int, remainderInts)},
		mixed(value.Float, func(a []value.Value) (value.Value, error) {
			if number(a[1]) == 0 {
				return value.Value{}, failure(DivisionByZero, "%", a)
			}
			return float(math.Mod(number(a[0]), number(a[1])), "%", a)
		}),
	),
	Examples: []Example{
		gives(1, 7, 2),
		gives(-1, -7, 2),
		gives(1, 7, -2),
		gives(1.5, 7.5, 2),
		gives(0, math.MinInt64, -1),
		fails(DivisionByZero, 7, 0),
	},
})

func remainderInts(a []value.Value) (value.Value, error) {
	if a[1].Int() == 0 {
		return value.Value{}, failure(DivisionByZero, "%", a)
	}
	// Go defines the smallest int % -1 as 0.
	return value.OfInt(a[0].Int() % a[1].Int()), nil
}
