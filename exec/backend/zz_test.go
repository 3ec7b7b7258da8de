package backend_test
import ("testing";"os";"fmt";"github.com/nnopt/nnopt/exec/backend";"github.com/nnopt/nnopt/exec/session";"github.com/nnopt/nnopt/onnx/lower")
func TestZZ(t *testing.T) {
	dirs, _ := backend.Find(os.Getenv("ZZ"))
	for _, dir := range dirs {
		c, err := backend.Load(dir)
		if err != nil || len(c.Sets)==0 { continue }
		s := session.New(opened(c.Model), session.Options{Options: lower.Options{LeaveOut: true, AnySizes: true}, Dir: c.Dir})
		f, _, err := s.Run(t.Context(), c.Sets[0].Inputs)
		if err != nil { continue }
		_, why := s.Functions()
		if f.AnySizes() { fmt.Println("OPEN") } else if why == nil { fmt.Println("CLOSED nothing open") } else { fmt.Println("CLOSED", c.Name, why) }
	}
}
