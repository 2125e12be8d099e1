//go:build race

package oracle

const underRace = true
