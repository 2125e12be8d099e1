package builtin

import "time"

var yearOf = define(Spec{
	Name:      "year",
	Group:     Time,
	Params:    []string{"ts"},
	Doc:       "The year, in UTC like all parts of a time.",
	Functions: timePart(func(t time.Time) int { return t.Year() }),
	Examples:  []Example{gives(2026, at("2026-11-30T12:34:56Z"))},
})
