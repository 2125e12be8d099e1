package builtin

import (
	"math"

	"github.com/heddle-live/heddle/engine/value"
)

var power = define(Spec{
	Name:   "pow",
	Group:  Maths,
	Params: []string{"x", "y"},
	Doc:    "The number `x` to the power of `y`, as a float.",
	Functions: append(mixed(value.Float, evalPow),
		two(value.Int, value.Int, value.Float, evalPow)),
	Examples: []Example{
		gives(8.0, 2, 3), gives(3.0, 9.0, 0.5), gives(0.25, 2, -2),
		fails(NotFinite, 10, 400), fails(NotFinite, -1, 0.5), fails(NotFinite, 0, -1),
	},
})

func evalPow(a []value.Value) (value.Value, error) {
	return float(math.Pow(number(a[0]), number(a[1])), "pow", a)
}
