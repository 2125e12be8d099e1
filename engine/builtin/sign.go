package builtin

import (
	"cmp"

	"github.com/heddle-live/heddle/engine/value"
)

var sign = define(Spec{
	Name:   "sign",
	Group:  Maths,
	Params: []string{"x"},
	Doc:    "-1 of a number below 0, 0 of 0, 1 of a number above: an int.",
	Functions: []Function{
		one(value.Int, value.Int, func(a []value.Value) (value.Value, error) {
			return value.OfInt(int64(cmp.Compare(a[0].Int(), 0))), nil
		}),
		one(value.Float, value.Int, func(a []value.Value) (value.Value, error) {
			return value.OfInt(int64(cmp.Compare(a[0].Float(), 0))), nil
		}),
	},
	Examples: []Example{gives(-1, -7), gives(0, 0.0), gives(1, 0.5)},
})
