package builtin

import "github.com/heddle-live/heddle/engine/value"

var absFloat64 = define(Spec{
	Name:   "abs_float64",
	Group:  Maths,
	Params: []string{"x"},
	Doc:    "The number without its sign, as a float.",
	Functions: []Function{
		one(value.Float, value.Float, absFloat), one(value.Int, value.Float, absFloat),
	},
	Examples: []Example{gives(1.5, -1.5), gives(7.0, -7)},
})
