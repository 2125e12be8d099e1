package builtin

import "math"

var floor = define(Spec{
	Name:      "floor",
	Group:     Maths,
	Params:    []string{"x"},
	Doc:       "The largest whole number up to `x`, of the type of `x`.",
	Functions: whole("floor", math.Floor),
	Examples:  []Example{gives(1.0, 1.5), gives(-2.0, -1.5), gives(7, 7)},
})
