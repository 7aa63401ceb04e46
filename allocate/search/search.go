// Package search looks for the best matrix of devices per job and node when the
// worth of a job's row depends only on how many devices it has, on how many nodes,
// and on whether it must change. It is a mechanism; Pollux (Qiao et al., OSDI 2021)
// is the strategy it was made for, and its simulated world uses it too.
//
// There are two searches over one problem: Genetic, after the artefact of the paper
// (NSGA-II over fairness-weighted speed and utilisation, with its crossover,
// mutations and repairs; status read), and Greedy, our deterministic twin: counts
// by marginal worth, then packing, then local improvement.
//
// Left out of the artefact: fixed jobs, several kinds of resources, and growing the
// cluster itself. A node counts replicas of one size; nodes differ in how many fit.
package search

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
)

// Job is one row of a problem.
type Job struct {
	// Most is the largest number of replicas.
	Most int
	// Factor multiplies its speedup if its row changes: what of its time a restart
	// leaves it.
	Factor float64
	// Speedup on replicas on so many nodes, both at least 1. It is asked once for
	// each pair.
	Speedup func(nodes, replicas int) float64
	// May says which nodes it may use; nil is all.
	May []bool
}

// Problem is what to find a matrix for. Earlier jobs win where two want the same.
type Problem struct {
	// Room is the number of replicas that fit on each node, 63 at most.
	Room []int
	Jobs []Job
	// Base is the matrix of today; changing a row costs.
	Base Matrix
	// MostNodes bounds the nodes of a job.
	MostNodes int
	// Mingle allows two jobs that each span nodes to meet on a node, where they
	// would disturb each other's exchanges.
	Mingle bool
}

// Matrix counts replicas by job and node. Rows are padded to whole words.
type Matrix struct {
	jobs, nodes int
	cells       []uint8
}

// NewMatrix returns an empty matrix.
func NewMatrix(jobs, nodes int) Matrix {
	return Matrix{jobs: jobs, nodes: nodes, cells: make([]uint8, jobs*stride(nodes))}
}

func stride(nodes int) int { return (nodes + 7) &^ 7 }

// Row is the replicas of a job by node; it may be written to.
func (m Matrix) Row(job int) []uint8 {
	at := job * stride(m.nodes)
	return m.cells[at : at+m.nodes : at+m.nodes]
}

// Size counts the nodes and the replicas of a job.
func (m Matrix) Size(job int) (nodes, replicas int) {
	s := stride(m.nodes)
	return size(m.cells[job*s : (job+1)*s])
}

// Eight counts are handled at once, as the bytes of a word. With at most mostRoom in
// each, a sum of three does not overflow.
const (
	mostRoom = 63
	high     = 0x8080808080808080
)

func word(cells []uint8, at int) uint64 { return binary.LittleEndian.Uint64(cells[at:]) }

func putWord(cells []uint8, at int, x uint64) { binary.LittleEndian.PutUint64(cells[at:], x) }

// occupied has the high bit of each byte that is not 0, all being less than 128.
func occupied(x uint64) uint64 { return (x + 0x7f7f7f7f7f7f7f7f) & high }

// size counts the bytes that are not 0, and their sum.
func size(row []uint8) (nodes, replicas int) {
	const pairs, ones = 0x00ff00ff00ff00ff, 0x0001000100010001
	for at := 0; at+8 <= len(row); at += 8 {
		if x := word(row, at); x != 0 {
			nodes += bits.OnesCount64(occupied(x))
			replicas += int(((x & pairs) + (x >> 8 & pairs)) * ones >> 48)
		}
	}
	return nodes, replicas
}

// nothing is the speedup of a job without devices: small enough that the harmonic
// mean starts every job there is room for, above zero so that it stays finite.
const nothing = 1e-3

// Value is what both searches make large: the harmonic mean over jobs of the speedups
// after what a change costs. It is dominated by the jobs that fare worst, so shares are fair.
func (p *Problem) Value(m Matrix) float64 {
	s := newSpace(p)
	sum := 0.0
	for j := range p.Jobs {
		c, _ := s.row(j, m.cells[j*s.stride:(j+1)*s.stride])
		sum += c
	}
	return float64(len(p.Jobs)) / sum
}

// space is a problem prepared for search.
type space struct {
	*Problem
	jobs, nodes, stride int
	// scale makes the share of devices of one node worth 1.
	scale float64
	// speed[j] is the speedup by nodes and replicas, NaN where not asked yet.
	speed [][]float64
	base  []uint8
	most  []uint8 // by job and node
}

func newSpace(p *Problem) *space {
	s := &space{Problem: p, jobs: len(p.Jobs), nodes: len(p.Room), stride: stride(len(p.Room))}
	devices := 0
	for _, r := range p.Room {
		devices += r
	}
	s.scale = float64(s.nodes) / float64(max(devices, 1))
	s.base = p.Base.cells
	s.most = make([]uint8, len(s.base))
	for j := range p.Jobs {
		job := &p.Jobs[j]
		table := make([]float64, (min(job.Most, s.nodes, p.MostNodes)+1)*(job.Most+1))
		for i := range table {
			table[i] = math.NaN()
		}
		s.speed = append(s.speed, table)
		for n, room := range p.Room {
			if job.May == nil || job.May[n] {
				s.most[j*s.stride+n] = uint8(min(room, mostRoom))
			}
		}
	}
	return s
}

// speedup of a job, 0 without devices.
func (s *space) speedup(j, nodes, replicas int) float64 {
	if nodes == 0 {
		return 0
	}
	at := &s.speed[j][nodes*(s.Jobs[j].Most+1)+replicas]
	if math.IsNaN(*at) {
		*at = s.Jobs[j].Speedup(nodes, replicas)
	}
	return *at
}

// row returns what a row adds to the sum of inverses, and its plain speedup.
func (s *space) row(j int, row []uint8) (inverse, speedup float64) {
	nodes, replicas := size(row)
	if replicas > s.Jobs[j].Most || nodes > s.MostNodes {
		nodes, replicas = 0, 0 // only a base may be beyond its own limits
	}
	speedup = s.speedup(j, nodes, replicas)
	worth := speedup * s.scale
	if !bytes.Equal(row, s.base[j*s.stride:(j+1)*s.stride]) {
		worth *= s.Jobs[j].Factor
	}
	return 1 / (worth + nothing), speedup
}
