// Package pollux has the rates of the Pollux artefact (Qiao et al., OSDI 2021; branch
// osdi21-artifact of petuum/adaptdl): six training applications as measured on T4 devices,
// and what a job of its workloads makes of so many replicas and a batch. That they are what
// the artefact was published with its simulator shows, which is among the tests: it
// reproduces the published results of the artefact's Tiresias and Optimus to the last
// digit, up to one choice that the measurements leave open (below). The measurements are
// read from a directory; none is part of this package.
//
// What the artefact means by its results, as found by reading and replaying it:
//
//   - A placement is the number of replicas on each node of the ring, and equals its
//     rotations. All placements on up to 4 nodes of 4 devices were measured; their step
//     times are interpolated over the local batch and never extrapolated.
//   - Any other placement knows only its nodes (16 at most), replicas and local
//     batch: a linear interpolation over the Delaunay cells of these three raw numbers,
//     for the means of the measured placements and some larger runs.
//   - These points form boxes and prisms that may be cut in several ways. The artefact
//     takes what Qhull happens to build; this package has a rule instead. Recorded
//     choices of the artefact give all 64 published averages exactly; the rule gives
//     those of Tiresias to 0.001 %, and those of Optimus, which compares large packings
//     at every tick, to 1.4 % (workload 6 to 0.06 %, the mean of eight to 0.3 %).
//   - The batch of a job is fixed by its user. It is split over replicas with extra
//     passes where memory is short; one replica above the initial batch makes two.
//   - Progress counts steps of the initial batch. A step of scale s gains
//     (var+sqr)/(var/s+sqr), the gradient's statistics being those recorded during the
//     epoch, between the runs of neighbouring batch sizes. An epoch ends at the least
//     progress at which any recorded run ended it, whatever the batch.
//   - A job completes after its application's number of epochs; no metric is consulted.
//   - Epochs end on whole seconds, ties to even, at most a half second off each.
//   - Time passes first, then jobs are admitted, then the policy decides: a job starts
//     at the first tick at or after its submission, and a finished job's devices stay
//     idle until the tick ends. Completion is counted to the second inside the tick.
//   - Any change of a job's list of nodes, also of its order, costs 30 s in which the
//     devices are held; progress is never lost. The first start costs the same.
//   - The mean is over completion minus submission of all jobs; nothing is censored.
package pollux
