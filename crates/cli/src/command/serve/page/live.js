'use strict';
// Every string that comes from a disk is set as text, never as markup.
const VERDICTS = ['misaligned', 'partial', 'unknown', 'aligned'];
const DEEDS = ['reads', 'writes', 'trims', 'zeroes'];
const CLASSES = [0, ...Array.from({ length: 12 }, (_, i) => 512 * 2 ** i)];
const SVG = 'http://www.w3.org/2000/svg';
const find = id => document.getElementById(id);
const NOTHING = { duration_ns: 0, layers: [], exports: [], history: [] };
// What came last.
let before = JSON.parse(find('now').textContent);
// Samples of the last ten minutes, the oldest first.
const HISTORY = before.history;
const KEPT = 600;
// Fixes of the check, by provider and rule.
const CURES = JSON.parse(find('cures').textContent);
const drawn = before.generation;

// Characters that are not seen, or turn the line's direction, are spelt out.
const plain = text => text.replace(/[\0-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, c => '\\u{' + c.charCodeAt(0).toString(16) + '}');
// Of a layer: another of its name may have come since.
const called = layer => named(layer.provider) + (layer.gone ? ' (gone)' : '');
const named = name => name === '' ? 'disk' : plain(name);
const size = n => n >= 2 ** 20 ? n / 2 ** 20 + 'M' : n >= 1024 ? n / 1024 + 'K' : String(n);
const edge = n => n === 0 ? '<512' : n === 2 ** 20 ? '\u22651M' : size(n);
const short = n => n < 1000 ? String(Math.round(n)) : n < 1e4 ? (n / 1e3).toFixed(1) + 'k' : n < 1e6 ? Math.round(n / 1e3) + 'k' : (n / 1e6).toFixed(1) + 'M';
const percent = (n, of) => n === of ? '100 %' : n * 1000 < of ? 'under 0.1 %' : Math.min(99.9, 100 * n / of).toFixed(n * 10 < of ? 1 : 0) + ' %';

// Of bytes: as disks are sold, and as fio and dd say it.
const megabytes = bytes => (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);
const time = ns => ns < 1e3 ? ns + ' ns' : ns < 1e6 ? (ns / 1e3).toFixed(ns < 1e4 ? 1 : 0) + ' \u00b5s' : ns < 1e9 ? (ns / 1e6).toFixed(ns < 1e7 ? 1 : 0) + ' ms' : (ns / 1e9).toFixed(1) + ' s';

function element(parent, tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  parent.append(made);
  return made;
}

// Of all kinds of request, by verdict.
function verdicts(of) {
  const sum = {};
  for (const v of VERDICTS) sum[v] = DEEDS.reduce((n, deed) => n + of[deed][v], 0);
  return sum;
}

const nothing = () => ({ misaligned: 0, partial: 0, unknown: 0, aligned: 0 });
function add(sum, more) { for (const v of VERDICTS) sum[v] += more[v]; }
const total = sum => VERDICTS.reduce((n, v) => n + sum[v], 0);
const worst = sum => VERDICTS.find(v => sum[v] > 0) || '';
const requests = verdicts => VERDICTS.reduce((n, v) => n + verdicts[v], 0);

const every = deeds => DEEDS.reduce((n, deed) => n + deeds[deed], 0);

// Layers of all exports and disks as one: requests by verdict, and pieces of each disk.
function merged(served) {
  const all = new Map();
  for (const layer of served.layers) {
    const at = all.get(layer.id) || { layer, blamed: 0, reads: 0, writes: 0, bytes: 0, small: 0, operations: 0, needed: 0, sum: nothing(), disks: new Map() };
    add(at.sum, verdicts(layer.requests));
    at.reads += requests(layer.requests.reads);
    at.writes += requests(layer.requests.writes);
    at.bytes += every(layer.request_bytes);
    at.small += layer.requests.writes.partial;
    at.blamed += every(layer.blamed_requests);
    at.operations += layer.device_operations.writes;
    at.needed += layer.device_operations.writes_needed;
    const disk = at.disks.get(layer.disk) || { layer, sum: nothing() };
    add(disk.sum, verdicts(layer));
    at.disks.set(layer.disk, disk);
    all.set(layer.id, at);
  }
  for (const at of all.values()) at.disks = [...at.disks.values()].sort((a, b) => b.sum.misaligned - a.sum.misaligned);
  return all;
}

// What is drawn: of every layer its requests, of members of sets also the pieces that come through the set.
function boxes(served) {
  const all = new Map();
  const at = id => { if (!all.has(id)) all.set(id, nothing()); return all.get(id); };
  for (const layer of served.layers) {
    add(at(layer.id), verdicts(layer.requests));
    for (const id of layer.members) add(at(id), verdicts(layer));
  }
  return all;
}

// A text in as many of its characters as there is room for.
function fit(node, text, room) {
  node.textContent = text;
  const length = node.getComputedTextLength();
  if (length <= room) return;
  for (let left = Math.min(text.length - 1, Math.ceil(text.length * room / length)); left > 0; left--) {
    node.textContent = text.slice(0, left).trimEnd() + '\u2026';
    if (node.getComputedTextLength() <= room) return;
  }
  node.textContent = '';
}

const room = piece => piece.querySelector('.box').getBoundingClientRect().width - 12;

// In the longest of its forms that there is room for: how much misses says more than how much there is.
function fitLive(piece) {
  const live = piece.querySelector('.live');
  for (const form of (live.dataset.forms || '').split('\n')) {
    fit(live, form, room(piece));
    if (live.textContent === form) return;
  }
}

// What stands in the boxes, as wide as they are.
function fitStack() {
  for (const piece of document.querySelectorAll('.piece')) {
    for (const node of piece.querySelectorAll('.name,.what')) {
      node.dataset.whole ??= node.textContent;
      fit(node, node.dataset.whole, room(piece));
    }
    fitLive(piece);
  }
}

function drawStack(now, old, seconds) {
  for (const piece of document.querySelectorAll('.piece')) {
    const sum = now.get(Number(piece.dataset.id));
    if (!sum) continue;
    const moved = total(sum) - total(old.get(Number(piece.dataset.id)) || nothing());
    piece.setAttribute('class', 'piece ' + worst(sum) + (moved > 0 ? ' hot' : ' quiet'));
    const rate = short(moved / seconds) + '/s', off = percent(sum.misaligned, total(sum));
    piece.querySelector('.live').dataset.forms = sum.misaligned > 0 ? [rate + ' \u00b7 ' + off + ' misaligned', off + ' misaligned', off].join('\n') : rate;
    const bar = piece.querySelector('.bar');
    bar.replaceChildren();
    let x = Number(piece.dataset.x);
    for (const v of VERDICTS) {
      const width = Number(piece.dataset.w) * sum[v] / total(sum);
      const part = document.createElementNS(SVG, 'rect');
      for (const [name, value] of [['x', x / 10 + '%'], ['y', piece.dataset.y], ['width', width / 10 + '%'], ['height', 7], ['class', v]]) part.setAttribute(name, value);
      bar.append(part);
      x += width;
    }
    fitLive(piece);
  }
}

// Sizes of the units of a layer's disks, each once.
const lengths = at => [...new Set(at.disks.map(disk => disk.layer.unit))].sort((a, b) => a - b);
const units = at => lengths(at).map(unit => unit ? size(unit) : '?').join(', ');

// The disk; of several the one that misses most, and how many there are.
function disks(at) {
  if (at.disks.length === 1) return named(at.layer.disk);
  return at.disks[0].sum.misaligned > 0 ? named(at.disks[0].layer.disk) + ' of ' + at.disks.length : at.disks.length + ' disks';
}

// Why a layer misses, of the disk that misses most.
const blame = at => at.disks.map(disk => disk.layer).find(layer => layer.blame && every(layer.blamed) > 0)?.blame;
const reason = found => named(found.provider) + (found.chunk ? ' cuts them into chunks of ' + size(found.chunk) : ' begins ' + found.remainder + ' bytes past a boundary');

// The same sentences as the text that `serve` prints.
function says(at) {
  const all = short(total(at.sum)), lines = [], found = blame(at);
  const worst = at.disks[0], many = at.disks.length > 1, are = total(at.sum) === 1 ? ' request is' : ' requests are';
  const where = many ? 's of ' + at.disks.length + ' disks' + (worst.sum.misaligned > 0 ? ', ' + named(worst.layer.disk) + ' most often (' + short(worst.sum.misaligned) + ' of '
    + short(total(worst.sum)) + ' pieces)' : '') : at.layer.disk ? ' of ' + plain(at.layer.disk) : '';
  const unit = lengths(at).join('- or ') + '-byte ' + (at.layer.why || 'unknown') + ' unit' + where;
  if (at.blamed > 0 && found) {
    const cost = at.needed > 0 ? '; its writes come to ' + (at.operations / at.needed).toFixed(2) + ' \u00d7 the device operations' : '';
    lines.push(short(at.blamed) + ' of ' + all + are + ' off the ' + unit + ', because ' + reason(found) + cost + ': trueline explain ' + found.rule);
  }
  const own = at.sum.misaligned - at.blamed;
  const not = found ? 'a layer on the grain would not mend them' : 'no layer shifts them';
  if (own > 0) lines.push(short(own) + ' of ' + all + are + ' off the ' + unit + ', because the client sends them so: ' + not);
  if (at.small > 0) lines.push(short(at.small) + ' of ' + short(at.writes) + ' writes are smaller than the ' + unit + ', which is read first for each: trueline explain TL0004');
  return lines.map(line => called(at.layer) + ': ' + line);
}

function showLead(rows) {
  const sum = nothing();
  for (const at of rows) add(sum, at.sum);
  const verdict = worst(sum), mark = { misaligned: '\u2717', partial: '!', unknown: '?', aligned: '\u2713' };
  find('lead').className = verdict || 'none';
  if (!verdict) return;
  const what = { misaligned: 'is misaligned', partial: 'is smaller than the unit', unknown: 'is on disks of which no unit is known', aligned: 'is aligned' };
  find('verdict').textContent = mark[verdict] + ' ' + percent(sum[verdict], total(sum)) + ' of the I/O ' + what[verdict];
  find('why').replaceChildren();
  rows.sort((a, b) => b.sum.misaligned - a.sum.misaligned).flatMap(says).slice(0, 6).forEach(line => element(find('why'), 'li', line));
}

function showLayers(now, old, seconds) {
  const body = find('layers').tBodies[0];
  body.replaceChildren();
  for (const [key, at] of [...now].sort((a, b) => a[1].layer.id - b[1].layer.id)) {
    const was = old.get(key) || { reads: 0, writes: 0, bytes: 0 }, row = element(body, 'tr'), found = blame(at);
    const cost = at.needed > 0 ? (at.operations / at.needed).toFixed(2) + ' \u00d7' : '';
    element(row, 'td', called(at.layer));
    element(row, 'td', disks(at));
    element(row, 'td', units(at), 'n');
    element(row, 'td', short((at.reads - was.reads) / seconds), 'n');
    element(row, 'td', short((at.writes - was.writes) / seconds), 'n');
    element(row, 'td', megabytes((at.bytes - was.bytes) / seconds), 'n');
    element(row, 'td', short(at.sum.aligned), 'n');
    element(row, 'td', short(at.sum.misaligned), at.sum.misaligned ? 'n bad' : 'n');
    element(row, 'td', short(at.sum.partial), 'n');
    element(row, 'td', short(at.sum.unknown), 'n');
    element(row, 'td', cost, 'n');
    element(row, 'td', found ? named(found.provider) + (found.chunk ? ', in chunks of ' + size(found.chunk) : ', by ' + found.remainder + ' bytes') : '');
    // Where the table is narrow, a cell has its heading beside it.
    [...row.cells].forEach((cell, nth) => { cell.dataset.head = find('layers').tHead.rows[0].cells[nth].textContent; });
  }
}

// What to do about each layer that misses: the check's fixes for the layer that is to blame, or what the client would do.
function todo(at) {
  const found = blame(at), fixes = [], layer = at.layer;
  const unit = Math.max(...at.disks.map(disk => disk.layer.unit));
  if (at.blamed > 0 && found) {
    if (found.chunk) fixes.push('make ' + named(found.provider) + ' anew with chunks of ' + size(unit) + ' or a multiple of it');
    else {
      const known = CURES.filter(cure => cure.provider === found.provider && cure.rule === found.rule).flatMap(cure => cure.fix);
      // A disk begins where it begins.
      const disk = at.disks.map(disk => disk.layer).find(of => of.disk === found.provider && found.provider === layer.provider);
      if (disk) fixes.push('let what is written to ' + named(found.provider) + ' begin at byte ' + disk.phase + ' of it, or at multiples of ' + size(unit) + ' behind that');
      else fixes.push(...(known.length ? known : ['let ' + named(found.provider) + ' begin on a boundary of ' + size(unit) + ': ' + found.remainder + ' bytes before, or ' + (unit - found.remainder) + ' bytes after where it begins']));
    }
    fixes.push('trueline explain ' + found.rule);
  }
  if (at.sum.misaligned > at.blamed) fixes.push('let the client write at multiples of ' + size(unit) + ', in multiples of it; serve --record FILE writes down which requests do not');
  if (at.small > 0) {
    const known = CURES.filter(cure => cure.provider === layer.provider && cure.rule === 'TL0004').flatMap(cure => cure.fix);
    fixes.push(...(known.length ? known : ['let what stands on ' + called(layer) + ' write ' + size(unit) + ' at once: blocks of a file system, pages of a database']), 'trueline explain TL0004');
  }
  return [...new Set(fixes)];
}

function showTodo(rows) {
  const list = find('cures-shown'), misses = rows.map(at => [at, todo(at)]).filter(([, fixes]) => fixes.length > 0);
  misses.sort((a, b) => b[0].sum.misaligned - a[0].sum.misaligned);
  find('todo').hidden = misses.length === 0;
  list.replaceChildren();
  for (const [at, fixes] of misses.slice(0, 8)) {
    element(list, 'dt', called(at.layer));
    for (const fix of fixes) {
      const line = element(list, 'dd');
      element(line, fix.startsWith('trueline ') ? 'code' : 'span', plain(fix));
    }
  }
}

// What is drawn of a second: of two samples, or of one where it was waited for.
const SECONDS = (a, b) => Math.max(0.001, (b.duration_ns - a.duration_ns) / 1e9);
const CHARTS = {
  requests: {
    of: (a, b) => ['misaligned', 'partial', 'unknown', 'aligned'].map(v => (b.verdicts[v] - a.verdicts[v]) / SECONDS(a, b)),
    kinds: ['misaligned', 'partial', 'unknown', 'aligned'],
    stacked: true,
    say: n => short(n) + '/s',
    now: values => [['', short(values.reduce((n, v) => n + v, 0)) + '/s']],
  },
  bytes: {
    of: (a, b) => [b.bytes.reads - a.bytes.reads, b.bytes.writes - a.bytes.writes].map(n => n / SECONDS(a, b)),
    kinds: ['reads', 'writes'],
    say: n => megabytes(n) + ' MB/s',
    now: ([reads, writes]) => [['reads', megabytes(reads) + ' read'], ['writes', megabytes(writes) + ' written']],
  },
  latency: {
    of: (a, b) => [b.p99_ns, b.p50_ns],
    kinds: ['p99', 'p50'],
    say: time,
    now: ([p99, p50]) => p99 > 0 ? [['p50', 'p50 ' + time(p50)], ['p99', 'p99 ' + time(p99)]] : [['', 'nothing waits for a device']],
  },
};

function keep(samples) {
  for (const sample of samples) {
    if (HISTORY.length && sample.duration_ns <= HISTORY[HISTORY.length - 1].duration_ns) continue;
    HISTORY.push(sample);
  }
  HISTORY.splice(0, HISTORY.length - KEPT);
}

function showHistory() {
  find('history').hidden = HISTORY.length < 2;
  if (HISTORY.length < 2) return;
  const end = HISTORY[HISTORY.length - 1].duration_ns / 1e9, span = Math.max(60, end - HISTORY[0].duration_ns / 1e9);
  const x = sample => 600 - (end - sample.duration_ns / 1e9) / span * 600;
  for (const figure of document.querySelectorAll('#history figure')) {
    const chart = CHARTS[figure.dataset.chart], drawing = figure.querySelector('svg');
    const points = HISTORY.slice(1).map((sample, nth) => [x(HISTORY[nth]), x(sample), chart.of(HISTORY[nth], sample)]);
    const height = values => chart.stacked ? values.reduce((n, v) => n + v, 0) : Math.max(...values);
    const most = Math.max(...points.map(([, , values]) => height(values)));
    const y = value => (99 - 97 * value / (most || 1)).toFixed(2);
    drawing.replaceChildren();
    chart.kinds.forEach((kind, nth) => {
      const upto = values => chart.stacked ? values.slice(nth).reduce((n, v) => n + v, 0) : values[nth];
      const steps = points.map(([from, to, values]) => 'L' + from.toFixed(2) + ' ' + y(upto(values)) + 'L' + to.toFixed(2) + ' ' + y(upto(values))).join('');
      const line = document.createElementNS(SVG, 'path');
      line.setAttribute('class', kind + (chart.stacked ? ' area' : ' line'));
      line.setAttribute('d', chart.stacked ? 'M' + points[0][0].toFixed(2) + ' 99' + steps + 'L600 99Z' : 'M' + steps.slice(1));
      drawing.append(line);
    });
    const output = figure.querySelector('output');
    output.replaceChildren();
    for (const [kind, text] of chart.now(points[points.length - 1][2])) element(output, 'span', text, kind);
    const ago = span >= 90 ? Math.round(span / 60) + ' min' : Math.round(span) + ' s';
    figure.querySelector('.axis').textContent = most > 0 ? 'the last ' + ago + ', at most ' + chart.say(most) : 'nothing in the last ' + ago;
  }
}

function offerLayers(served) {
  const select = find('of');
  const there = new Set([...select.options].map(option => option.value));
  for (const layer of served.layers) {
    const value = String(layer.id);
    if (there.has(value)) continue;
    there.add(value);
    element(select, 'option', called(layer)).value = value;
  }
}

function showMap(served, op) {
  const chosen = find('of').value, cells = new Map();
  let most = 1;
  for (const layer of served.layers.filter(layer => chosen === '' || String(layer.id) === chosen)) {
    for (const bucket of layer.histogram.filter(bucket => bucket.op === op)) {
      const key = bucket.size + ' ' + bucket.alignment;
      const cell = cells.get(key) || nothing();
      cell[bucket.verdict] += bucket.count;
      most = Math.max(most, total(cell));
      cells.set(key, cell);
    }
  }
  const body = find(op).tBodies[0];
  body.replaceChildren();
  for (const row of [...CLASSES].reverse()) {
    const line = element(body, 'tr');
    element(line, 'th', edge(row));
    for (const column of CLASSES) {
      const sum = cells.get(row + ' ' + column);
      if (!sum) { element(line, 'td'); continue; }
      const level = 1 + Math.min(3, Math.floor(4 * Math.log(total(sum) + 1) / Math.log(most + 1)));
      // What most of them are.
      const verdict = VERDICTS.reduce((a, b) => sum[b] > sum[a] ? b : a);
      const cell = element(line, 'td', short(total(sum)), verdict + ' l' + level);
      cell.title = VERDICTS.filter(v => sum[v]).map(v => sum[v] + ' ' + v).join(', ');
    }
  }
  const foot = element(body, 'tr');
  element(foot, 'th');
  CLASSES.forEach(column => element(foot, 'th', edge(column)));
}

function show(now, old) {
  const seconds = Math.max(0.001, (now.duration_ns - old.duration_ns) / 1e9);
  const rows = merged(now), were = merged(old);
  const waiting = Math.max(0, ...now.exports.map(e => e.most_waiting));
  const errors = now.exports.reduce((n, e) => n + e.flush_errors + DEEDS.reduce((m, deed) => m + e.errors[deed], 0), 0);
  const rate = kind => short(([...rows.values()].reduce((n, at) => n + at[kind], 0) - [...were.values()].reduce((n, at) => n + at[kind], 0)) / seconds);
  find('state').className = '';
  find('state').textContent = 'live, ' + Math.round(now.duration_ns / 1e9) + ' s: ' + rate('reads') + ' reads/s, ' + rate('writes') + ' writes/s, '
    + megabytes(([...rows.values()].reduce((n, at) => n + at.bytes, 0) - [...were.values()].reduce((n, at) => n + at.bytes, 0)) / seconds) + ' MB/s'
    + (waiting ? ', at most ' + waiting + ' at the device at a time' : '') + (errors ? ', ' + errors + ' failed' : '');
  drawStack(boxes(now), boxes(old), seconds);
  showLead([...rows.values()]);
  showTodo([...rows.values()]);
  keep(now.history);
  showHistory();
  showLayers(rows, were, seconds);
  offerLayers(now);
  showMap(now, 'write');
  showMap(now, 'read');
}

// The rates are those since serving began.
show(before, NOTHING);
fitStack();
const events = new EventSource('events');
events.onmessage = event => {
  const now = JSON.parse(event.data);
  // What was drawn is not what is there any more: it is drawn anew.
  if (now.generation !== drawn) return location.reload();
  show(now, before);
  before = now;
};
events.onerror = () => {
  find('state').className = 'gone';
  find('state').textContent = 'the server does not answer: what it last counted is shown';
};
addEventListener('resize', fitStack);
find('of').onchange = () => ['write', 'read'].forEach(op => showMap(before, op));
