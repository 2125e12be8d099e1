package builtin

import "time"

var minuteOf = define(Spec{
	Name:      "minute",
	Group:     Time,
	Params:    []string{"ts"},
	Doc:       "The minute, from 0 to 59.",
	Functions: timePart(func(t time.Time) int { return t.Minute() }),
	Examples:  []Example{gives(34, at("2026-11-30T12:34:56Z"))},
})
