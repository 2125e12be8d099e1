package builtin

import "time"

var weekdayOf = define(Spec{
	Name:      "weekday",
	Group:     Time,
	Params:    []string{"ts"},
	Doc:       "The day of the week, from 1 for Monday to 7 for Sunday.",
	Functions: timePart(func(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }),
	Examples: []Example{
		gives(1, at("2026-11-30T12:34:56Z")),
		gives(7, at("2026-11-29T00:00:00Z")),
	},
})
