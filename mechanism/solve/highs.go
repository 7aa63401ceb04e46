package solve

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

//go:embed highs/highs.wasm
var highsWasm []byte

// The names under which highs.wasm exports the functions of HiGHS' C interface.
const (
	construct    = "v"
	malloc       = "uc"
	create       = "F"
	destroy      = "G"
	version      = "H"
	passMip      = "V"
	runModel     = "N"
	setBool      = "ia"
	setInt       = "ja"
	setDouble    = "ka"
	intInfo      = "Aa"
	doubleInfo   = "Ba"
	int64Info    = "Ca"
	getSolution  = "Ea"
	modelStatus  = "Ga"
	primalStatus = "primal_solution_status"
)

var (
	compiling   sync.Once
	cacheFolder string
	runtime     wazero.Runtime
	compiled    wazero.CompiledModule
	errLoad     error
)

// Cache names a folder in which the compiled solver is kept for the next process, made
// when the first program is solved. Without one, or where it cannot be used, every
// process compiles anew. It must be called before the first Solve.
func Cache(folder string) { cacheFolder = folder }

// load compiles the solver, once in a process.
func load(ctx context.Context) error {
	compiling.Do(func() {
		config := wazero.NewRuntimeConfig()
		if cacheFolder != "" {
			if cache, err := wazero.NewCompilationCacheWithDir(cacheFolder); err == nil {
				config = config.WithCompilationCache(cache)
			}
		}
		runtime = wazero.NewRuntimeWithConfig(ctx, config)
		if _, errLoad = system(runtime).Instantiate(ctx); errLoad == nil {
			compiled, errLoad = runtime.CompileModule(ctx, highsWasm)
		}
	})
	return errLoad
}

// system is what the solver finds instead of an operating system: no files, no
// environment, an output that nobody reads and a clock that stands still.
func system(r wazero.Runtime) wazero.HostModuleBuilder {
	const badFile, noFile = 8, -44
	die := func(what string) func() { return func() { panic(errors.New("the solver " + what)) } }
	zero := func(m api.Module, at ...uint32) {
		for _, a := range at {
			m.Memory().WriteUint32Le(a, 0)
		}
	}
	b := r.NewHostModuleBuilder("a")
	for name, f := range map[string]any{
		"a": func(_, _, _ uint32) { die("threw an exception")() },
		"b": func(code uint32) { die(fmt.Sprintf("left with code %d", code))() },
		"r": func(code uint32) { die(fmt.Sprintf("left with code %d", code))() },
		"k": die("aborted"),
		"s": func() {},
		"c": func() float64 { return 0 },
		"j": func() float64 { return 0 },
		"p": func(_ context.Context, m api.Module, _ uint32, _ uint64, at uint32) uint32 {
			zero(m, at, at+4)
			return 0
		},
		"l": func(_ uint32, _ float64) uint32 { return 0 },
		"m": func(_ context.Context, m api.Module, zone, daylight, _, _ uint32) { zero(m, zone, daylight) },
		"o": func(_ context.Context, m api.Module, count, size uint32) uint32 { zero(m, count, size); return 0 },
		"n": func(_, _ uint32) uint32 { return 0 },
		"q": func(_ context.Context, m api.Module, size uint32) uint32 {
			pages := (uint64(size) + 65535) / 65536
			if now := uint64(m.Memory().Size()) / 65536; pages > now {
				if _, ok := m.Memory().Grow(uint32(pages - now)); !ok {
					return 0
				}
			}
			return 1
		},
		"d": func(_ uint32) uint32 { return badFile },
		"e": func(_, _, _ uint32) int32 { return noFile },
		"h": func(_, _, _ uint32) int32 { return noFile },
		"i": func(_, _, _, _ uint32) int32 { return noFile },
		"g": func(_, _, _, _ uint32) uint32 { return badFile },
		"t": func(_ uint32, _ uint64, _, _ uint32) uint32 { return badFile },
		"f": discard,
	} {
		b.NewFunctionBuilder().WithFunc(f).Export(name)
	}
	return b
}

// discard is fd_write: it takes all and keeps nothing.
func discard(_ context.Context, m api.Module, _, vectors, count, written uint32) uint32 {
	total := uint32(0)
	for i := range count {
		n, _ := m.Memory().ReadUint32Le(vectors + 8*i + 4)
		total += n
	}
	m.Memory().WriteUint32Le(written, total)
	return 0
}

// instance is the solver's program with its memory, in which one solver after the other
// lives, each for one problem. The first thing that goes wrong stays in err, and all later
// calls do nothing.
type instance struct {
	ctx    context.Context
	module api.Module
	solver uint64
	err    error
}

func start() (*instance, error) {
	ctx := context.Background()
	if err := load(ctx); err != nil {
		return nil, err
	}
	m, err := runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	h := &instance{ctx: ctx, module: m}
	h.call(construct)
	return h, nil
}

func (h *instance) call(name string, args ...uint64) uint32 {
	if h.err != nil {
		return 0
	}
	out, err := h.module.ExportedFunction(name).Call(h.ctx, args...)
	if err != nil {
		h.err = err
	}
	if err != nil || len(out) == 0 {
		return 0
	}
	return uint32(out[0])
}

// must calls what returns HiGHS' status: -1 is an error, 1 a warning.
func (h *instance) must(what, name string, args ...uint64) {
	if int32(h.call(name, append([]uint64{h.solver}, args...)...)) < 0 && h.err == nil {
		h.err = fmt.Errorf("the solver refused to %s", what)
	}
}

// room returns the address of n fresh bytes.
func (h *instance) room(n int) uint64 {
	at := uint64(h.call(malloc, uint64(max(n, 8))))
	if at == 0 && h.err == nil {
		h.err = errors.New("the solver is out of memory")
	}
	return at
}

func (h *instance) put(b []byte) uint64 {
	at := h.room(len(b))
	if h.err == nil {
		h.module.Memory().Write(uint32(at), b)
	}
	return at
}

func (h *instance) name(s string) uint64 { return h.put(append([]byte(s), 0)) }

func (h *instance) floats(xs []float64) uint64 {
	b := make([]byte, 0, 8*len(xs))
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return h.put(b)
}

func (h *instance) ints(xs []int32) uint64 {
	b := make([]byte, 0, 4*len(xs))
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return h.put(b)
}

// eight reads eight bytes.
func (h *instance) eight(at uint64) uint64 {
	if h.err != nil {
		return 0
	}
	x, ok := h.module.Memory().ReadUint64Le(uint32(at))
	if !ok {
		h.err = errors.New("the solver pointed outside its memory")
	}
	return x
}

func (h *instance) read(at uint64, n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = math.Float64frombits(h.eight(at + 8*uint64(i)))
	}
	return xs
}

// info reads one of HiGHS' figures about its last run.
func (h *instance) info(name, reader string) uint64 {
	at := h.put(make([]byte, 8))
	h.must("tell "+name, reader, h.name(name), at)
	return h.eight(at)
}

// pass hands the problem over, by rows.
func (h *instance) pass(p *Problem) {
	lower, upper := make([]float64, len(p.rows)), make([]float64, len(p.rows))
	starts := make([]int32, 0, len(p.rows)+1)
	var index []int32
	var value []float64
	for i, r := range p.rows {
		lower[i], upper[i] = r.lower, r.upper
		starts = append(starts, int32(len(index)))
		for _, t := range r.terms {
			index, value = append(index, int32(t.Var)), append(value, t.Coef)
		}
	}
	starts = append(starts, int32(len(index)))
	whole := make([]int32, len(p.whole))
	for i, w := range p.whole {
		if w {
			whole[i] = 1
		}
	}
	sense := int32(1)
	if p.Maximise {
		sense = -1
	}
	integrality := uint64(0) // none: a linear program
	if p.anyWhole {
		integrality = h.ints(whole)
	}
	const byRows = 2
	h.must("take the problem", passMip, uint64(len(p.cost)), uint64(len(p.rows)), uint64(len(index)), byRows,
		api.EncodeI32(sense), api.EncodeF64(0), h.floats(p.cost), h.floats(p.lower), h.floats(p.upper),
		h.floats(lower), h.floats(upper), h.ints(starts), h.ints(index), h.floats(value), integrality)
}

func (h *instance) limit(b Budget) {
	or := func(n, otherwise int32) uint64 {
		if n == 0 {
			n = otherwise
		}
		return uint64(n)
	}
	h.must("be quiet", setBool, h.name("output_flag"), 0)
	h.must("bound its pivots", setInt, h.name("simplex_iteration_limit"), or(b.Pivots, 1_000_000))
	h.must("bound its nodes", setInt, h.name("mip_max_nodes"), or(b.Nodes, 10_000))
	h.must("take a gap", setDouble, h.name("mip_rel_gap"), api.EncodeF64(b.Gap))
	h.must("take a gap", setDouble, h.name("mip_abs_gap"), api.EncodeF64(0))
	// Programs solved one after the other, each holding what the last one reached, need
	// more exact rows than the usual 1e-7.
	h.must("be exact", setDouble, h.name("primal_feasibility_tolerance"), api.EncodeF64(1e-9))
	h.must("be exact", setDouble, h.name("dual_feasibility_tolerance"), api.EncodeF64(1e-9))
}

// run solves p by a new solver.
func (h *instance) run(p *Problem, b Budget) (Solution, error) {
	h.solver = uint64(h.call(create))
	defer func() { h.call(destroy, h.solver) }()
	h.limit(b)
	h.pass(p)
	h.must("run", runModel)
	status, err := h.status()
	if err != nil {
		return Solution{}, err
	}
	s := Solution{Status: status, Work: Work{Pivots: int64(int32(h.info("simplex_iteration_count", intInfo)))}}
	if p.anyWhole {
		s.Work.Nodes = int64(h.info("mip_node_count", int64Info))
		s.Bound = math.Float64frombits(h.info("mip_dual_bound", doubleInfo))
	}
	if status == Optimal || status == Feasible {
		n, m := len(p.cost), len(p.rows)
		x, reduced, activity, dual := h.room(8*n), h.room(8*n), h.room(8*m), h.room(8*m)
		h.must("hand its solution over", getSolution, x, reduced, activity, dual)
		s.X = h.read(x, n)
		if status == Optimal && !p.anyWhole {
			s.Dual = h.read(dual, m)
		}
	}
	if status == Feasible && !p.anyWhole {
		s.Bound = Inf // a linear program that did not end has no bound yet
		if !p.Maximise {
			s.Bound = -Inf
		}
	}
	return s, h.err
}

// status reads how the run ended.
func (h *instance) status() (Status, error) {
	const feasible = 2
	code := h.call(modelStatus, h.solver)
	found := h.info(primalStatus, intInfo)&0xffffffff == feasible
	if h.err != nil {
		return 0, h.err
	}
	switch code {
	case 7:
		return Optimal, nil
	case 8:
		return Infeasible, nil
	case 10:
		return Unbounded, nil
	case 14, 16: // out of pivots, out of nodes
		if found {
			return Feasible, nil
		}
		return Exhausted, nil
	}
	return 0, fmt.Errorf("the solver ended with model status %d", code)
}
