package trace

import "github.com/musterdl/muster/model/unit"

// shape is what a generator draws from.
type shape struct {
	name    string
	about   string
	jobs    int
	devices int
	load    float64
	widths  []width
	// hours is the rate of arrivals in each hour of the day, relative to the mean;
	// nil is constant. A day starts with the first submission.
	hours []float64
	// tenants are drawn by weight, apart from everything else; nil is none.
	tenants []tenant
	// sensitivities are drawn evenly for gangs above one.
	sensitivities []float64
	// restart is what a job loses on every resume.
	restart unit.Duration
}

// width is one gang size, how often it comes, and how long such jobs run.
type width struct {
	gang   int32
	weight float64
	run    law
}

type tenant struct {
	name   string
	weight float64
}

const rwLoad = 0.95

var rwRun = lognormal{medianS: 1800, sigma: 1.8, lowS: 60, highS: 72 * 3600}
var rwLongRun = lognormal{medianS: 3600, sigma: 1.3, lowS: 300, highS: 24 * 3600}

// The reference workloads are synthetic by definition. The three shapes are
// fitted to published traces of licence class A (redistribution with
// attribution), which hold only as distributions here:
//
//   - philly: Microsoft Philly, Sep-Nov 2017, CC BY 4.0 (74,167 jobs);
//   - helios: SenseTime Helios, Venus GPU jobs, Mar-Aug 2020, CC BY 4.0 (99,707
//     jobs, durations clamped at 48 h);
//   - pai: Alibaba PAI, tasks of Jul-Aug 2020, CC BY 4.0 (43,308 sampled tasks,
//     clamped at 48 h, fractions of a GPU rounded up).
//
// Gang sizes rarer than one in a thousand are counted with the nearest listed.
// Arrivals are Poisson within each hour: the bursts of real users, which submit
// many equal jobs at once, and the weekly rhythm are left out.
var shapes = []*shape{
	{name: "rw-a", about: "reference workload RW-A: 480 jobs on 60 devices, lognormal durations", jobs: 480, devices: 60, load: rwLoad,
		widths: []width{{1, .42, rwRun}, {2, .12, rwRun}, {4, .18, rwRun}, {8, .18, rwRun}, {16, .07, rwRun}, {32, .03, rwRun}}},
	{name: "rw-a-prime", about: "RW-A': as RW-A with 160 jobs on 32 devices, gangs to 16, a restart of 60 s", jobs: 160, devices: 32, load: rwLoad,
		widths:  []width{{1, .42, rwRun}, {2, .12, rwRun}, {4, .18, rwRun}, {8, .18, rwRun}, {16, .10, rwRun}},
		restart: 60 * unit.Second},
	{name: "rw-l", about: "RW-L: 160 jobs on 64 devices that suffer from spreading over nodes", jobs: 160, devices: 64, load: rwLoad,
		widths:        []width{{1, .3, rwLongRun}, {2, .15, rwLongRun}, {4, .2, rwLongRun}, {8, .2, rwLongRun}, {16, .15, rwLongRun}},
		sensitivities: []float64{0, .1, .5, 2}},
	{name: "philly", about: "shaped like Microsoft Philly 2017, with its 15 virtual clusters as tenants", jobs: 10_000, devices: 2_490, load: rwLoad,
		widths: phillyWidths, hours: phillyHours, tenants: phillyTenants},
	{name: "helios", about: "shaped like SenseTime Helios Venus 2020", jobs: 10_000, devices: 1_064, load: rwLoad,
		widths: heliosWidths, hours: heliosHours},
	{name: "pai", about: "shaped like Alibaba PAI 2020", jobs: 10_000, devices: 6_742, load: rwLoad,
		widths: paiWidths, hours: paiHours},
}

var (
	phillyRun1 = &quantiles{1, 52, 62, 151, 1192, 2734, 8347, 16700, 62840, 123200, 248000, 929600, 3256000}
	phillyRun2 = &quantiles{2, 9, 11, 15, 20, 59.75, 91450, 217100, 387200, 555000, 884900, 1491000, 2583000}
	phillyRun4 = &quantiles{9, 80, 136, 683.5, 17390, 88960, 184900, 289000, 567700, 1006000, 1239000, 2487000, 2751000}
	phillyRun8 = &quantiles{9, 95.4, 199.3, 1524, 25540, 179200, 367100, 561800, 833000, 1094000, 2014000, 2657000, 4628000}
	phillyRun9 = &quantiles{20, 45.65, 118.2, 434.8, 51860, 141800, 325000, 505100, 650100, 1124000, 1358000, 1639000, 1711000}
)

// Weights are numbers of jobs.
var phillyWidths = []width{
	{1, 69294, phillyRun1}, {2, 1530, phillyRun2}, {4, 1687, phillyRun4}, {8, 1451, phillyRun8}, {16, 168, phillyRun9},
	{32, 37, phillyRun9},
}

var phillyHours = []float64{
	1.30, 1.02, 1.14, 1.07, 0.54, 1.12, 1.73, 2.09, 1.07, 0.96, 1.01, 0.85,
	0.77, 0.69, 0.64, 0.67, 0.91, 0.68, 0.82, 0.70, 1.07, 0.92, 1.19, 1.05,
}

var phillyTenants = []tenant{
	{"6214e9", 37755}, {"11cb48", 13036}, {"6c71a0", 9570}, {"b436b2", 7352}, {"103959", 1569},
	{"0e4a51", 1296}, {"ee9e8c", 1167}, {"ed69ec", 1108}, {"7f04ca", 635}, {"2869ce", 344},
	{"e13805", 320}, {"23dbec", 8}, {"795a4c", 3}, {"51b7ef", 2}, {"925e2b", 2},
}

var (
	heliosRun1   = &quantiles{1, 4, 14, 58, 193, 1645, 10660, 35160, 99910, 172800, 172800, 172800, 172800}
	heliosRun2   = &quantiles{1, 5, 15, 61, 185, 1818, 44740, 129100, 172800, 172800, 172800, 172800, 172800}
	heliosRun8   = &quantiles{1, 8, 26, 101, 210, 1073, 23210, 59240, 152000, 172800, 172800, 172800, 172800}
	heliosRun9   = &quantiles{1, 10, 20, 95, 368, 8390, 57670, 104500, 172800, 172800, 172800, 172800, 172800}
	heliosRun32  = &quantiles{1, 5, 10, 55, 260, 2682, 76570, 169600, 172800, 172800, 172800, 172800, 172800}
	heliosRun64  = &quantiles{1, 5, 10, 40, 219.5, 995.2, 12160, 49800, 107900, 155400, 172800, 172800, 172800}
	heliosRun120 = &quantiles{1, 5, 5, 10, 71, 299, 1487, 15200, 133400, 172700, 172800, 172800, 172800}
)

// Weights are numbers of jobs.
var heliosWidths = []width{
	{1, 50278, heliosRun1}, {2, 5377, heliosRun2}, {3, 153, heliosRun2}, {4, 7455, heliosRun2}, {6, 166, heliosRun2},
	{7, 179, heliosRun2}, {8, 26045, heliosRun8}, {16, 4677, heliosRun9}, {24, 897, heliosRun9}, {32, 2420, heliosRun32},
	{40, 316, heliosRun32}, {48, 304, heliosRun32}, {56, 195, heliosRun32}, {64, 357, heliosRun64}, {80, 367, heliosRun64},
	{152, 307, heliosRun120}, {160, 214, heliosRun120},
}

var heliosHours = []float64{
	0.92, 0.63, 0.58, 0.33, 0.26, 0.19, 0.17, 0.22, 0.38, 0.83, 1.37, 1.52,
	1.15, 1.31, 1.55, 1.65, 1.73, 1.73, 1.24, 1.30, 1.33, 1.34, 1.18, 1.10,
}

var (
	paiRun1  = &quantiles{5, 26, 35, 102, 476, 3532, 11350, 21390, 44780, 59260, 97720, 170300, 172800}
	paiRun2  = &quantiles{6, 48, 63.5, 158, 627, 3574, 13380, 31190, 61650, 93290, 136500, 172800, 172800}
	paiRun8  = &quantiles{29, 99, 147, 312.5, 1363, 5662, 20190, 32040, 66750, 101100, 161800, 172800, 172800}
	paiRun20 = &quantiles{32, 102, 172.2, 706, 2744, 7224, 17220, 29000, 56950, 79430, 125900, 172800, 172800}
	paiRun50 = &quantiles{18, 51.35, 195.6, 679.2, 2148, 9464, 27210, 45770, 64100, 82150, 108300, 157000, 172800}
)

// Weights are numbers of jobs.
var paiWidths = []width{
	{1, 33251, paiRun1}, {2, 1357, paiRun2}, {3, 633, paiRun2}, {4, 651, paiRun2}, {5, 720, paiRun2},
	{6, 135, paiRun2}, {8, 572, paiRun8}, {10, 1616, paiRun8}, {12, 370, paiRun8}, {15, 203, paiRun8},
	{16, 502, paiRun8}, {18, 48, paiRun8}, {20, 932, paiRun20}, {25, 301, paiRun20}, {30, 494, paiRun20},
	{32, 92, paiRun20}, {40, 291, paiRun20}, {50, 625, paiRun50}, {60, 102, paiRun50}, {64, 70, paiRun50},
	{80, 89, paiRun50}, {100, 254, paiRun50},
}

var paiHours = []float64{
	0.64, 0.82, 0.91, 0.93, 1.06, 0.87, 0.87, 1.19, 1.30, 1.10, 1.05, 1.07,
	1.14, 1.07, 1.18, 1.20, 0.97, 0.94, 0.86, 0.66, 0.71, 1.41, 1.14, 0.91,
}
