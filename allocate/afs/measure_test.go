package afs

import (
	"fmt"
	"testing"
)

// The claim, over ten draws: AFS-L against the others, and where it must lose.
func TestClaim(t *testing.T) {
	const draws = 10
	m := map[string]float64{}
	for seed := range uint64(draws) {
		for k, v := range Measure(seed + 1) {
			m[k] += v / draws
		}
	}
	for _, load := range []int{30, 60, 90} {
		over := func(other string) float64 {
			return m[fmt.Sprintf("afs_jct_s_load%d", load)] / m[fmt.Sprintf("%s_jct_s_load%d", other, load)]
		}
		if srtf, gain, equal := over("srtf"), over("gain"), over("equal"); srtf > .5 || gain > .9 || equal > 1 {
			t.Errorf("load 0.%d: mean JCT over elastic SRTF's %.3f, gain's %.3f, equal share's %.3f; want at most 0.5, 0.9, 1", load/10, srtf, gain, equal)
		}
	}
	afs, srtf, equal := m["afs_jct_s_perfect_scaling_load90"], m["srtf_jct_s_perfect_scaling_load90"], m["equal_jct_s_perfect_scaling_load90"]
	if afs <= srtf || afs < .9*equal || afs > equal {
		t.Errorf("with perfect scaling: AFS %.0f s, SRTF %.0f s, equal share %.0f s: it must lose to SRTF and be near equal share", afs, srtf, equal)
	}
	if m["longer_wins_at_1"] != 0 || m["longer_wins_at_16"] >= .5 || m["longer_wins_at_16"] < m["longer_wins_at_2"] {
		t.Errorf("the longer of two jobs wins %.2f at 1 device, %.2f at 2, %.2f at 16: the rule has no forecast to make it win more than half",
			m["longer_wins_at_1"], m["longer_wins_at_2"], m["longer_wins_at_16"])
	}
	if inner := m["inner_rank_correlation"]; !(inner > 0 && inner < 1) {
		t.Errorf("the inner goal's rank correlation with the mean JCT is %.2f", inner)
	}
}

func TestSameSeedSameFigures(t *testing.T) {
	if a, b := fmt.Sprint(Measure(3)), fmt.Sprint(Measure(3)); a != b {
		t.Errorf("got %s, then %s", a, b)
	}
}
