package builtin

import "time"

var hourOf = define(Spec{
	Name:      "hour",
	Group:     Time,
	Params:    []string{"ts"},
	Doc:       "The hour, from 0 to 23.",
	Functions: timePart(func(t time.Time) int { return t.Hour() }),
	Examples:  []Example{gives(12, at("2026-11-30T12:34:56Z"))},
})
