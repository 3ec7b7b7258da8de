package main
import ("context";"fmt";"os";"path/filepath";"runtime/pprof";"time"
"github.com/nnopt/nnopt/onnx";"github.com/nnopt/nnopt/onnx/ir";"github.com/nnopt/nnopt/onnx/lower";"github.com/nnopt/nnopt/optdb";"github.com/nnopt/nnopt/passes")
func main(){
 q,_:=optdb.ParseQuery("+fast_run -unsafe_nan"); opt,err:=passes.Default().Build(q); if err!=nil{panic(err)}
 f,_:=os.Create("/tmp/cpu.prof"); pprof.StartCPUProfile(f)
 for k:=0;k<5;k++{ t:=time.Now(); m,err:=onnx.ReadFile(os.Args[1]); if err!=nil{panic(err)}
 t1:=time.Now(); g,err:=ir.Import(m,ir.Options{Dir:filepath.Dir(os.Args[1]),Evaluator:lower.Evaluator{}}); if err!=nil{panic(err)}
 t2:=time.Now(); n:=g.NumApplies(); if err:=opt.Rewrite(context.Background(),g,nil);err!=nil{panic(err)}
 t3:=time.Now(); fmt.Println("read",t1.Sub(t),"import",t2.Sub(t1),"rewrite",t3.Sub(t2),n,g.NumApplies())}
 pprof.StopCPUProfile()
}
