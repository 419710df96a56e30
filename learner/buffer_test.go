package learner

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/wire"
)

var start = time.Unix(1_000_000, 0)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func waiting(order, version uint64, peer byte) Record {
	return Record{CID: wire.SumCID(unique(int(order))), Order: order, Version: version, Peer: wire.PeerID([]byte{peer})}
}

func orders(rs []Record) []uint64 {
	out := []uint64{}
	for _, r := range rs {
		out = append(out, r.Order)
	}
	return out
}

func TestBufferTake(t *testing.T) {
	type arrival struct {
		second int
		record Record
	}
	tests := []struct {
		name     string
		arrivals []arrival
		now      int
		want     []uint64
		wait     time.Duration
	}{
		{"nothing waits", nil, 100, []uint64{}, 0},
		{"too few", []arrival{{0, waiting(0, 1, 1)}, {4, waiting(1, 1, 2)}}, 5, []uint64{}, 9 * time.Second},
		{"too few for long", []arrival{{0, waiting(0, 1, 1)}, {4, waiting(1, 1, 2)}}, 14, []uint64{0, 1}, 0},
		{"oldest version first, then in order of arrival", []arrival{
			{0, waiting(0, 2, 1)}, {0, waiting(1, 1, 2)}, {0, waiting(2, 2, 1)}, {0, waiting(3, 1, 2)}, {0, waiting(4, 1, 1)},
		}, 0, []uint64{1, 3, 4, 0}, 0},
		{"one peer alone may fill a batch", []arrival{
			{0, waiting(0, 1, 1)}, {0, waiting(1, 1, 1)}, {0, waiting(2, 1, 1)}, {0, waiting(3, 1, 1)}, {0, waiting(4, 1, 1)},
		}, 0, []uint64{0, 1, 2, 3}, 0},
		{"but not while others could", []arrival{
			{0, waiting(0, 1, 1)}, {0, waiting(1, 1, 1)}, {0, waiting(2, 1, 1)}, {0, waiting(3, 1, 2)}, {0, waiting(4, 1, 2)},
		}, 0, []uint64{0, 1, 3, 4}, 0},
		{"for which it waits", []arrival{
			{0, waiting(0, 1, 1)}, {0, waiting(1, 1, 1)}, {1, waiting(2, 1, 1)}, {2, waiting(3, 1, 2)}, {7, waiting(4, 1, 1)},
		}, 8, []uint64{}, 4 * time.Second},
		{"but not for ever", []arrival{
			{0, waiting(0, 1, 1)}, {0, waiting(1, 1, 1)}, {1, waiting(2, 1, 1)}, {2, waiting(3, 1, 2)}, {7, waiting(4, 1, 1)},
		}, 12, []uint64{0, 1, 2, 3}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBuffer(BatchRule{Groups: 4, PeerShare: 0.5, Patience: 10 * time.Second})
			for _, a := range tt.arrivals {
				b.Add(a.record, false, at(a.second))
			}
			got, wait := b.Take(at(tt.now))
			if diff := cmp.Diff(tt.want, orders(got)); diff != "" || wait != tt.wait {
				t.Errorf("wait %v, want %v; orders (-want +got):\n%s", wait, tt.wait, diff)
			}
			if b.Len() != len(tt.arrivals)-len(tt.want) {
				t.Errorf("%d of %d groups stay", b.Len(), len(tt.arrivals))
			}
		})
	}
}

// A step that takes more than its groups goes on until as many of them teach, within its bound and with as much regard for
// whose they are.
func TestBufferTakesUntilEnoughTeach(t *testing.T) {
	type arrivals struct {
		peer    byte
		teaches string // t for one that teaches, f for one that is flat
	}
	tests := []struct {
		name     string
		arrivals []arrivals // of 1 s each
		now      int
		want     []uint64
		wait     time.Duration
	}{
		{"all teach", []arrivals{{1, "tt"}, {2, "ttt"}}, 1, []uint64{0, 1, 2, 3}, 0},
		{"past flat ones, not behind the last that it needs", []arrivals{{1, "tff"}, {2, "ftft"}, {1, "tff"}}, 2, []uint64{0, 1, 2, 3, 4, 5, 6, 7}, 0},
		{"too few teach yet", []arrivals{{1, "tff"}, {2, "ftft"}}, 5, []uint64{}, 6 * time.Second},
		{"too few teach for long", []arrivals{{1, "tff"}, {2, "ftft"}}, 11, []uint64{0, 1, 2, 3, 4, 5, 6}, 0},
		{"as many as it may take", []arrivals{{1, "ffff"}, {2, "fffff"}, {1, "ft"}}, 2, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 0},
		{"a peer that teaches enough has others' waited for", []arrivals{{1, "tttt"}, {2, "t"}}, 1, []uint64{}, 9 * time.Second},
		{"but not for ever", []arrivals{{1, "tttt"}, {2, "t"}}, 10, []uint64{0, 1, 2, 3}, 0},
		{"and others are taken before its own", []arrivals{{1, "ttttff"}, {2, "ftft"}}, 1, []uint64{0, 1, 6, 7, 8, 9}, 0},
		{"one peer's flat ones do not fill the step", []arrivals{{1, "ffffffff"}, {2, "ttft"}, {3, "tt"}}, 2, []uint64{0, 1, 2, 3, 4, 8, 9, 12, 13}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBuffer(BatchRule{Groups: 4, Dynamic: 2.5, PeerShare: 0.5, Patience: 10 * time.Second})
			order := uint64(0)
			for second, a := range tt.arrivals {
				for _, c := range a.teaches {
					b.Add(waiting(order, 1, a.peer), c == 't', at(second))
					order++
				}
			}
			got, wait := b.Take(at(tt.now))
			if diff := cmp.Diff(tt.want, orders(got)); diff != "" || wait != tt.wait {
				t.Errorf("wait %v, want %v; orders (-want +got):\n%s", wait, tt.wait, diff)
			}
		})
	}
}

// Every group that goes in comes out once, from Take in batches of the right size or from Expire, and an older version
// never after a newer one that was there at the same time, unless its peer had its share.
func TestBufferKeepsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := BatchRule{
			Groups:  rapid.IntRange(1, 5).Draw(t, "groups"),
			Dynamic: rapid.SampledFrom([]float64{0, 1, 1.5, 4}).Draw(t, "dynamic"), PeerShare: 0.5, Patience: 10 * time.Second,
		}
		b := NewBuffer(rule)
		now, head, order := 0, uint64(0), uint64(0)
		out, teaches := make(map[uint64]bool), make(map[uint64]bool)
		leave := func(rs []Record) {
			for _, r := range rs {
				if out[r.Order] {
					t.Fatalf("group %d left twice", r.Order)
				}
				out[r.Order] = true
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now += rapid.IntRange(0, 4).Draw(t, "seconds")
			switch rapid.SampledFrom([]string{"add", "add", "take", "expire"}).Draw(t, "event") {
			case "add":
				lag := uint64(rapid.IntRange(0, 4).Draw(t, "lag"))
				teaches[order] = rapid.Bool().Draw(t, "teaches")
				b.Add(waiting(order, head-min(head, lag), byte(rapid.IntRange(1, 3).Draw(t, "peer"))), teaches[order], at(now))
				order++
			case "take":
				before := b.Len()
				batch, wait := b.Take(at(now))
				leave(batch)
				teaching := 0
				for _, r := range batch {
					if teaches[r.Order] {
						teaching++
					}
				}
				switch {
				case len(batch) > rule.Groups && (teaching > rule.Groups || float64(len(batch)) > rule.Dynamic*float64(rule.Groups)):
					t.Fatalf("a batch of %d, of which %d teach", len(batch), teaching)
				case len(batch) > rule.Groups && teaching == rule.Groups && !teaches[batch[len(batch)-1].Order]:
					t.Fatal("a batch goes on when enough teach")
				case len(batch) > 0 && len(batch) < rule.Most() && teaching < rule.Groups && b.Len() > 0:
					t.Fatalf("a batch of %d, of which %d teach, leaves %d groups", len(batch), teaching, b.Len())
				case len(batch) == 0 && before > 0 && (wait <= 0 || wait > rule.Patience):
					t.Fatalf("%d groups wait for %v", before, wait)
				case len(batch) > 0 && len(batch) < min(before, rule.Groups):
					t.Fatalf("a batch of %d out of %d", len(batch), before)
				}
				if !slices.IsSortedFunc(batch, older) {
					t.Fatal("a batch is not oldest first")
				}
			case "expire":
				head += uint64(rapid.IntRange(0, 2).Draw(t, "released"))
				expired := b.Expire(head, 2, at(now))
				leave(expired)
				for _, r := range expired {
					if head-r.Version <= 2 {
						t.Fatalf("version %d expired at %d", r.Version, head)
					}
				}
				for _, r := range b.waiting {
					if head-r.Version > 2 {
						t.Fatalf("version %d stays at %d", r.Version, head)
					}
				}
			}
		}
		for rest := b.Rest(); len(rest) > 0; rest = b.Rest() {
			leave(rest)
		}
		if len(out) != int(order) {
			t.Fatalf("%d of %d groups left", len(out), order)
		}
	})
}
