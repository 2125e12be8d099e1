package builtin

import (
	"math"
	"slices"

	"github.com/heddle-live/heddle/engine/value"
)

var add = define(Spec{
	Name:   "+",
	Group:  Operators,
	Params: []string{"a", "b"},
	Doc: "The sum. With a float on one side, an int on the other is taken as a float. A " +
		"timestamp and an int are the time so many milliseconds later.",
	Functions: slices.Concat(
		[]Function{two(value.Int, value.Int, value.Int, addInts)},
		mixed(value.Float, func(a []value.Value) (value.Value, error) {
			return float(number(a[0])+number(a[1]), "+", a)
		}),
		[]Function{
			two(value.Timestamp, value.Int, value.Timestamp, addTime),
			two(value.Int, value.Timestamp, value.Timestamp, addTime),
		},
	),
	Examples: []Example{
		gives(5, 2, 3),
		gives(2.5, 2, 0.5),
		gives(at("2026-11-30T12:00:01Z"), at("2026-11-30T12:00:00Z"), 1000),
		fails(Overflow, math.MaxInt64, 1),
		fails(NotFinite, math.MaxFloat64, math.MaxFloat64),
	},
})

func addInts(a []value.Value) (value.Value, error) {
	x, y := a[0].Int(), a[1].Int()
	sum := x + y
	if (sum > x) != (y > 0) {
		return value.Value{}, failure(Overflow, "+", a)
	}
	return value.OfInt(sum), nil
}

func addTime(a []value.Value) (value.Value, error) {
	v, err := addInts(a)
	return value.OfTimestamp(v.Int()), err
}
