package plane
import ("encoding/json";"strings";"fmt")
func diffState(a, b *Plane) string {
	x,_ := json.MarshalIndent(a.engine.State(),""," "); y,_ := json.MarshalIndent(b.engine.State(),""," ")
	p,q := strings.Split(string(x),"\n"), strings.Split(string(y),"\n")
	s := fmt.Sprint(len(p)," ",len(q),"\n")
	for i := range min(len(p),len(q)) { if p[i]!=q[i] { s += fmt.Sprint(i,": ",p[i]," | ",q[i],"\n") } }
	return s
}
