// Package oracle has only tests: they compare the rule engine with its slow twin in
// package naive, and with clingo, on random programs, transactions, watches, queries
// and deploys. A failure shrinks and names its seed.
package oracle
