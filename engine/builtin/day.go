package builtin

import "time"

var dayOf = define(Spec{
	Name:      "day",
	Group:     Time,
	Params:    []string{"ts"},
	Doc:       "The day of the month, from 1.",
	Functions: timePart(func(t time.Time) int { return t.Day() }),
	Examples:  []Example{gives(30, at("2026-11-30T12:34:56Z"))},
})
