package lite

import "sync/atomic"

// Counters are what sessions count; many sessions may share one. The names that
// end in Open are gauges, the others only rise.
type Counters struct {
	SessionsOpen      atomic.Int64
	RequestsOpen      atomic.Int64
	SubscriptionsOpen atomic.Int64
	GroupStreamsOpen  atomic.Int64 // of newest groups, without FIN

	SessionsTotal      atomic.Uint64
	RequestsTotal      atomic.Uint64
	RequestsRefused    atomic.Uint64 // reset by us, whatever the reason
	SubscriptionsTotal atomic.Uint64
	GroupsSent         atomic.Uint64 // group streams begun
	FramesSent         atomic.Uint64
	BytesSent          atomic.Uint64 // of group streams, headers included
	GroupsSuperseded   atomic.Uint64 // never sent to a viewer that newer ones reached
	StreamCreditWaits  atomic.Uint64 // a group had to wait for the peer's stream credit
	BlockedWrites      atomic.Uint64 // a group had to wait for the peer's flow control
}
