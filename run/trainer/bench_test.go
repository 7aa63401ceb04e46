package trainer

import "testing"

func BenchmarkStep(b *testing.B) {
	for _, d := range []division{{"1 worker", 1, nil}, {"2 workers", 2, nil}, {"2 stages", 2, oneForwardOneBackward(8, 2)}} {
		b.Run(d.name, func(b *testing.B) {
			c := Default()
			all := meshesFor(b, d, defaultPatience)
			workers := make([]*worker, d.workers)
			for rank := range workers {
				workers[rank] = newWorker(c, corpus, d.plan, all[rank])
			}
			b.ReportAllocs()
			b.ResetTimer()
			together(b, d.workers, func(rank int) error {
				for step := range b.N {
					if _, err := workers[rank].step(step+1, false, false); err != nil {
						return err
					}
				}
				return nil
			})
			b.StopTimer()
			flop := 0.0
			for i := range c.depth() {
				forward, _ := layerCost(c.Shape, i, c.Batch*c.Seq)
				flop += 3 * forward
			}
			b.ReportMetric(flop*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOPS")
			together(b, d.workers, func(rank int) error { all[rank].leave(); return nil })
		})
	}
}

func BenchmarkAllReduce(b *testing.B) {
	const world, floats = 4, 1 << 18
	all := meshes(b, world, defaultPatience)
	b.SetBytes(4 * floats)
	b.ResetTimer()
	together(b, world, func(rank int) error {
		x := make([]float32, floats)
		for range b.N {
			if err := all[rank].sum(x); err != nil {
				return err
			}
		}
		return nil
	})
	b.StopTimer()
	together(b, world, func(rank int) error { all[rank].leave(); return nil })
}

func BenchmarkCheckpoint(b *testing.B) {
	c := Default()
	s := newStage(c, 0, c.depth(), &ring{world: 1})
	dir := checkpoints{dir: b.TempDir()}
	b.SetBytes(int64(12 * len(s.w)))
	for b.Loop() {
		if err := dir.save(s, 1, 0, 1); err != nil {
			b.Fatal(err)
		}
	}
}
