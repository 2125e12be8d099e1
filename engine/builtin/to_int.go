package builtin

import (
	"errors"
	"math"
	"strconv"

	"github.com/heddle-live/heddle/engine/value"
)

var toInt = define(Spec{
	Name:   "to_int",
	Group:  Casts,
	Params: []string{"x"},
	Doc: "An int: of a float without what follows the point, of decimal digits in a string, 0 or " +
		"1 of a bool, the milliseconds since 1970 of a timestamp.",
	Functions: []Function{
		one(value.Int, value.Int, func(a []value.Value) (value.Value, error) { return a[0], nil }),
		one(value.Float, value.Int, intOfFloat),
		one(value.String, value.Int, intOfString),
		one(value.Bool, value.Int, intOfBits),
		one(value.Timestamp, value.Int, intOfBits),
	},
	Examples: []Example{
		gives(-1, -1.9), gives(42, "42"), gives(1, true), gives(1000, at("1970-01-01T00:00:01Z")),
		fails(BadCast, "4 2"), fails(BadCast, "4.2"), fails(Overflow, "9223372036854775808"),
		fails(Overflow, 1e19),
	},
})

func intOfFloat(a []value.Value) (value.Value, error) {
	f := math.Trunc(a[0].Float())
	// The float next to the largest int is 1<<63, which is none.
	if f < math.MinInt64 || f >= -math.MinInt64 {
		return value.Value{}, failure(Overflow, "to_int", a)
	}
	return value.OfInt(int64(f)), nil
}

func intOfString(a []value.Value) (value.Value, error) {
	i, err := strconv.ParseInt(a[0].Str(), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return value.Value{}, failure(Overflow, "to_int", a)
	case err != nil:
		return value.Value{}, failure(BadCast, "to_int", a)
	}
	return value.OfInt(i), nil
}

// intOfBits returns the int behind a bool or timestamp.
func intOfBits(a []value.Value) (value.Value, error) {
	if a[0].Kind() == value.Bool && a[0].Bool() {
		return value.OfInt(1), nil
	}
	return value.OfInt(a[0].Int()), nil
}
