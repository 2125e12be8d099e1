package builtin

import (
	"math"
	"slices"

	"github.com/heddle-live/heddle/engine/value"
)

var subtract = define(Spec{
	Name:   "-",
	Group:  Operators,
	Params: []string{"a", "b"},
	Doc: "The difference. With a float on one side, an int on the other is taken as a float. A " +
		"timestamp less an int is the time so many milliseconds earlier; a timestamp less a " +
		"timestamp is the milliseconds between them.",
	Functions: slices.Concat(
		[]Function{two(value.Int, value.Int, value.Int, subtractInts)},
		mixed(value.Float, func(a []value.Value) (value.Value, error) {
			return float(number(a[0])-number(a[1]), "-", a)
		}),
		[]Function{
			two(value.Timestamp, value.Int, value.Timestamp, subtractTime),
			two(value.Timestamp, value.Timestamp, value.Int, subtractInts),
		},
	),
	Examples: []Example{
		gives(-1, 2, 3),
		gives(1.5, 2, 0.5),
		gives(at("2026-11-30T11:59:00Z"), at("2026-11-30T12:00:00Z"), 60000),
		gives(60000, at("2026-11-30T12:00:00Z"), at("2026-11-30T11:59:00Z")),
		fails(Overflow, math.MinInt64, 1),
	},
})

func subtractInts(a []value.Value) (value.Value, error) {
	x, y := a[0].Int(), a[1].Int()
	difference := x - y
	if (difference < x) != (y > 0) {
		return value.Value{}, failure(Overflow, "-", a)
	}
	return value.OfInt(difference), nil
}

func subtractTime(a []value.Value) (value.Value, error) {
	v, err := subtractInts(a)
	return value.OfTimestamp(v.Int()), err
}
