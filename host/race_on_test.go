//go:build race

package host_test

// underRace says that the race detector slows everything down tenfold.
const underRace = true
