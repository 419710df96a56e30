package rollout

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/wire"
)

// TestPacer runs the pacer through random releases, waits and claims of other peers, against what the rules say.
func TestPacer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const blocks, charterPace = 3, 4
		purposes := []wire.Purpose{wire.PurposeEvaluateSampled, wire.PurposeEvaluateGreedy}
		p := pacer{
			charterPace: charterPace, basePatience: time.Second, maxPatience: 4 * time.Second,
			order: func(version uint64) []int { return []int{2, 0, 1} },
		}
		claims := map[blockID]Claim{}
		claim := func(version uint64, purpose wire.Purpose, block uint64) Claim {
			return claims[blockID{version, purpose, block}]
		}
		release := Release{Policy: &Policy{}} // the newest
		p.take(release)
		pace, groups, waits := uint64(charterPace), uint64(0), 0
		left := map[blockID]bool{} // not started, of the version that is measured
		insist := false            // a newer version waits for that
		take := func(r Release) {
			for id := range left {
				if claims[id] == Settled {
					delete(left, id)
				}
			}
			p.measuring(claim)
			insist = len(left) > 0 && (r.Evaluate || r.Final)
			if taken := p.take(r); taken == insist {
				t.Fatalf("%+v taken is %v with %v left", r, taken, left)
			}
			if insist {
				return
			}
			pace, groups, waits = uint64(r.GroupsPerVersion), 0, 0
			if pace == 0 {
				pace = charterPace
			}
			if r.Evaluate || r.Final {
				for block := range uint64(blocks) {
					for _, purpose := range purposes {
						left[blockID{r.Version, purpose, block}] = true
					}
				}
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				if insist {
					continue // as a worker, which takes nothing newer meanwhile
				}
				release = Release{
					Policy:           &Policy{Version: release.Version + 1},
					Evaluate:         rapid.Bool().Draw(t, "evaluate"),
					Final:            rapid.IntRange(0, 9).Draw(t, "final") == 0,
					GroupsPerVersion: rapid.Uint32Range(0, 3).Draw(t, "pace"),
				}
				take(release)
			case 1, 2:
				id := blockID{p.measures, rapid.SampledFrom(purposes).Draw(t, "purpose"), uint64(rapid.IntRange(0, blocks-1).Draw(t, "block"))}
				if claims[id] != Settled {
					claims[id] = rapid.SampledFrom([]Claim{Unclaimed, Claimed, Settled}).Draw(t, "claim")
				}
			case 3:
				if !insist {
					p.take(release) // again
				}
			default:
				measuring := p.measuring(claim)
				if !measuring && insist {
					take(release)
					measuring = p.measuring(claim)
				}
				s := p.next()
				if measuring != (s.action == actEvaluate) {
					t.Fatalf("measuring is %v before %+v", measuring, s)
				}
				switch s.action {
				case actEvaluate:
					id := blockID{p.measures, s.purpose, s.block}
					if !left[id] || claims[id] == Settled || claims[id] == Claimed && !insist {
						t.Fatalf("evaluates %+v, %v, with %v left", id, claims[id], left)
					}
					delete(left, id)
					continue
				case actTrain:
					groups++
					if release.Final || groups > pace*uint64(1+waits) {
						t.Fatalf("group %d of pace %d after %d waits of %+v", groups, pace, waits, release)
					}
				case actWait:
					if want := min(time.Second<<waits, 4*time.Second); release.Final || groups != pace*uint64(1+waits) || s.patience != want {
						t.Fatalf("waits %v after %d groups of pace %d, wait %d of %+v", s.patience, groups, pace, waits, release)
					}
					waits++
					p.expired()
				case actIdle:
					if !release.Final {
						t.Fatalf("idles under %+v", release)
					}
				}
				for id := range left {
					if claims[id] == Unclaimed || claims[id] == Claimed && insist {
						t.Fatalf("%+v is not evaluated before %+v", id, s)
					}
				}
			}
		}
	})
}
