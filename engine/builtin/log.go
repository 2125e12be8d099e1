package builtin

import (
	"math"

	"github.com/heddle-live/heddle/engine/value"
)

var logarithm = define(Spec{
	Name:   "log",
	Group:  Maths,
	Params: []string{"x"},
	Doc:    "The natural logarithm; null of 0 and of a number below.",
	Functions: []Function{
		{
			Params: []value.Kind{value.Float}, Result: value.Float, Nullable: true,
			Eval: evalLogarithm,
		},
		{Params: []value.Kind{value.Int}, Result: value.Float, Nullable: true, Eval: evalLogarithm},
	},
	Examples: []Example{gives(0.0, 1), gives(1.0, 2.718281828459045), gives(value.OfNull(), 0)},
})

func evalLogarithm(a []value.Value) (value.Value, error) {
	x := number(a[0])
	if x <= 0 {
		return value.OfNull(), nil
	}
	return float(math.Log(x), "log", a)
}
