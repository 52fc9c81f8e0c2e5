'use strict';
// Every string that comes from a disk is set as text, never as markup.
const VERDICTS = ['misaligned', 'partial', 'unknown', 'aligned'];
const DEEDS = ['reads', 'writes', 'trims', 'zeroes'];
const CLASSES = [0, ...Array.from({ length: 12 }, (_, i) => 512 * 2 ** i)];
const SVG = 'http://www.w3.org/2000/svg';
const find = id => document.getElementById(id);
const NOTHING = { duration_ns: 0, layers: [], exports: [] };
// What came last.
let before = JSON.parse(find('now').textContent);
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

function element(parent, tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  parent.append(made);
  return made;
}

// Pieces of all kinds of request, by verdict.
function verdicts(layer) {
  const sum = {};
  for (const v of VERDICTS) sum[v] = DEEDS.reduce((n, deed) => n + layer[deed][v], 0);
  return sum;
}

const total = sum => VERDICTS.reduce((n, v) => n + sum[v], 0);
const worst = sum => VERDICTS.find(v => sum[v] > 0) || '';
const requests = verdicts => VERDICTS.reduce((n, v) => n + verdicts[v], 0);

// Layers of all exports as one; by provider, or by provider and disk.
function merged(served, key) {
  const all = new Map();
  for (const layer of served.layers) {
    const sum = verdicts(layer);
    const at = all.get(key(layer)) || { layer, blamed: 0, reads: 0, writes: 0, small: 0, operations: 0, needed: 0, sum: { misaligned: 0, partial: 0, unknown: 0, aligned: 0 } };
    for (const v of VERDICTS) at.sum[v] += sum[v];
    at.reads += requests(layer.reads);
    at.writes += requests(layer.writes);
    at.small += layer.writes.partial;
    at.blamed += DEEDS.reduce((n, deed) => n + layer.blamed[deed], 0);
    at.operations += layer.device_operations.writes;
    at.needed += layer.device_operations.writes_needed;
    all.set(key(layer), at);
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
    const at = now.get(Number(piece.dataset.id));
    if (!at) continue;
    const was = old.get(Number(piece.dataset.id));
    const moved = total(at.sum) - (was ? total(was.sum) : 0);
    piece.setAttribute('class', 'piece ' + worst(at.sum) + (moved > 0 ? ' hot' : ' quiet'));
    const rate = short(moved / seconds) + '/s', off = percent(at.sum.misaligned, total(at.sum));
    piece.querySelector('.live').dataset.forms = at.sum.misaligned > 0 ? [rate + ' \u00b7 ' + off + ' misaligned', off + ' misaligned', off].join('\n') : rate;
    const bar = piece.querySelector('.bar');
    bar.replaceChildren();
    let x = Number(piece.dataset.x);
    for (const v of VERDICTS) {
      const width = Number(piece.dataset.w) * at.sum[v] / total(at.sum);
      const part = document.createElementNS(SVG, 'rect');
      for (const [name, value] of [['x', x / 10 + '%'], ['y', piece.dataset.y], ['width', width / 10 + '%'], ['height', 7], ['class', v]]) part.setAttribute(name, value);
      bar.append(part);
      x += width;
    }
    fitLive(piece);
  }
}

function says(at) {
  const { layer, blamed, sum } = at, all = total(sum), unit = size(layer.unit) + ' unit' + (layer.disk ? ' of ' + plain(layer.disk) : '');
  const lines = [];
  if (blamed > 0 && layer.blame) {
    const cost = at.needed > 0 ? '; its writes come to ' + (at.operations / at.needed).toFixed(2) + ' \u00d7 the device operations' : '';
    lines.push(short(blamed) + ' of ' + short(all) + ' miss the ' + unit + ' because ' + named(layer.blame.provider) + ' begins ' + layer.blame.remainder
      + ' bytes past a boundary' + cost + ' (trueline explain ' + layer.blame.rule + ')');
  }
  if (sum.misaligned > blamed) lines.push(short(sum.misaligned - blamed) + ' of ' + short(all) + ' miss the ' + unit + ' by their own offset or length');
  if (at.small > 0) lines.push(short(at.small) + ' of ' + short(at.writes) + ' writes are smaller than the ' + unit + ', which is read first for each (trueline explain TL0004)');
  return lines.map(line => called(layer) + ': ' + line);
}

function showLead(rows) {
  const sum = { misaligned: 0, partial: 0, unknown: 0, aligned: 0 };
  for (const at of rows) for (const v of VERDICTS) sum[v] += at.sum[v];
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
    const was = old.get(key) || { reads: 0, writes: 0 }, row = element(body, 'tr'), layer = at.layer;
    const cost = at.needed > 0 ? (at.operations / at.needed).toFixed(2) + ' \u00d7' : '';
    element(row, 'td', called(layer));
    element(row, 'td', named(layer.disk));
    element(row, 'td', layer.unit ? size(layer.unit) : '?', 'n');
    element(row, 'td', short((at.reads - was.reads) / seconds), 'n');
    element(row, 'td', short((at.writes - was.writes) / seconds), 'n');
    element(row, 'td', short(at.sum.aligned), 'n');
    element(row, 'td', short(at.sum.misaligned), at.sum.misaligned ? 'n bad' : 'n');
    element(row, 'td', short(at.sum.partial), 'n');
    element(row, 'td', short(at.sum.unknown), 'n');
    element(row, 'td', cost, 'n');
    element(row, 'td', layer.blame ? named(layer.blame.provider) + ', by ' + layer.blame.remainder + ' bytes' : '');
    // Where the table is narrow, a cell has its heading beside it.
    [...row.cells].forEach((cell, nth) => { cell.dataset.head = find('layers').tHead.rows[0].cells[nth].textContent; });
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
      const cell = cells.get(key) || { misaligned: 0, partial: 0, unknown: 0, aligned: 0 };
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
  const provider = layer => layer.id, place = layer => layer.id + ' ' + layer.disk;
  const rows = merged(now, place), were = merged(old, place);
  const waiting = Math.max(0, ...now.exports.map(e => e.most_waiting));
  const errors = now.exports.reduce((n, e) => n + e.flush_errors + DEEDS.reduce((m, deed) => m + e.errors[deed], 0), 0);
  const rate = kind => short(([...rows.values()].reduce((n, at) => n + at[kind], 0) - [...were.values()].reduce((n, at) => n + at[kind], 0)) / seconds);
  find('state').className = '';
  find('state').textContent = 'live, ' + Math.round(now.duration_ns / 1e9) + ' s: ' + rate('reads') + ' reads/s, ' + rate('writes') + ' writes/s'
    + (waiting ? ', at most ' + waiting + ' waiting' : '') + (errors ? ', ' + errors + ' failed' : '');
  drawStack(merged(now, provider), merged(old, provider), seconds);
  showLead([...rows.values()]);
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
