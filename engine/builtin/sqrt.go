package builtin

import (
	"math"

	"github.com/heddle-live/heddle/engine/value"
)

var sqrt = define(Spec{
	Name:   "sqrt",
	Group:  Maths,
	Params: []string{"x"},
	Doc:    "The square root; null of a number below 0.",
	Functions: []Function{
		{Params: []value.Kind{value.Float}, Result: value.Float, Nullable: true, Eval: evalSqrt},
		{Params: []value.Kind{value.Int}, Result: value.Float, Nullable: true, Eval: evalSqrt},
	},
	Examples: []Example{gives(1.5, 2.25), gives(3.0, 9), gives(value.OfNull(), -1)},
})

func evalSqrt(a []value.Value) (value.Value, error) {
	x := number(a[0])
	if x < 0 {
		return value.OfNull(), nil
	}
	return float(math.Sqrt(x), "sqrt", a)
}
