package builtin

import (
	"math"
	"slices"

	"github.com/heddle-live/heddle/engine/value"
)

var divide = define(Spec{
	Name:   "/",
	Group:  Operators,
	Params: []string{"a", "b"},
	Doc: "The quotient. Of two ints it is an int, cut off towards zero. With a float on one " +
		"side, an int on the other is taken as a float.",
	Functions: slices.Concat(
		[]Function{two(value.Int, value.Int, value.Int, divideInts)},
		mixed(value.Float, func(a []value.Value) (value.Value, error) {
			if number(a[1]) == 0 {
				return value.Value{}, failure(DivisionByZero, "/", a)
			}
			return float(number(a[0])/number(a[1]), "/", a)
		}),
	),
	Examples: []Example{
		gives(3, 7, 2),
		gives(-3, -7, 2),
		gives(3.5, 7.0, 2),
		fails(DivisionByZero, 7, 0),
		fails(DivisionByZero, 7.0, 0),
		fails(Overflow, math.MinInt64, -1),
	},
})

func divideInts(a []value.Value) (value.Value, error) {
	x, y := a[0].Int(), a[1].Int()
	switch {
	case y == 0:
		return value.Value{}, failure(DivisionByZero, "/", a)
	case x == math.MinInt64 && y == -1:
		return value.Value{}, failure(Overflow, "/", a)
	}
	return value.OfInt(x / y), nil
}
