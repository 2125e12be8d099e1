// Package lite is a moq-lite session over any protocol.Session: it answers a
// peer's requests from an Origin, sends the groups of its subscriptions, and
// asks for tracks as a client. It maps our errors to wire codes; nothing above
// it does. It never learns what a frame means.
//
// A session has one sender goroutine, which never waits for the peer, and one
// goroutine for each open request stream and for each stream that is being
// received. Run owns and awaits them all.
package lite
