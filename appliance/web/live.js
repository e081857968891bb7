{
  const words = value => value === null || value === undefined ? "" : String(value);
  const fill = (id, rows) => {
    const body = document.querySelector(`#${id} tbody`);
    body.replaceChildren(...rows.map(row => {
      const line = document.createElement("tr");
      row.forEach((text, place) => {
        const cell = document.createElement(place ? "td" : "th");
        if (!place) cell.scope = "row";
        cell.textContent = words(text);
        line.append(cell);
      });
      return line;
    }));
  };
  const say = (id, text) => { document.getElementById(id).textContent = text; };
  const show = data => {
    const run = data.status;
    document.getElementById("trouble").hidden = run !== null && run.phase === "serving" && !run.error;
    if (run === null) { say("trouble", "nothing runs here"); return; }
    say("trouble", run.error || run.phase);
    say("run", `${run.phase}, ${run.topology}, ${run.model} at ${run.endpoint}, since ${run.started}`);
    fill("processes", run.processes.map(p => [p.name, p.phase, p.answers ? "yes" : "no", p.pid, p.port, p.resident_mib, p.restarts, p.last_error]));
    fill("loads", run.loads.map(l => [l.name, l.running,
      Object.entries(l.queued).map(([name, count]) => `${count} ${name.replace(/^num_|_queue_reqs$|_reqs$/g, "").replaceAll("_", " ")}`).join(", "),
      `${(100 * l.kv_use).toFixed(1)} %`, l.output_tokens_per_s, l.prompt_tokens, l.output_tokens]));
    fill("transfers", run.loads.filter(l => l.kv_transfers).map(l => [l.name, l.kv_transfers, (l.kv_bytes / 1e6).toFixed(1), l.kv_latency_ms, l.kv_gb_s]));
    fill("gpus", run.gpus.map(g => [g.index, g.name, g.memory_used_mib, g.memory_mib, g.power_w, g.temperature_c, (g.throttled || []).join(", ")]));
    fill("findings", data.findings.map(f => [f.severity, f.rule, f.evidence]));
    say("checked", data.checked);
    say("when", new Date().toLocaleTimeString());
  };
  const ask = async () => {
    try {
      const answer = await fetch("status.json", { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      show(await answer.json());
      say("lost", "");
    } catch { say("lost", "the page's server does not answer; what is shown is old"); }
    setTimeout(ask, 2000);
  };
  ask();
}
