//go:build invariants

package pebble

// checkPromises: every Effective record is held against the store.
const checkPromises = true
