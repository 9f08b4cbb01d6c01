//===- Rules.cpp - Checks each access to a buffer -------------------------===//

#include "Machine.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace weir;
using namespace weir::sim;

Machine::Holder Machine::findHolder(const Store &store, int64_t cell,
                                    std::optional<size_t> dispatch) const {
  Holder holder = {store.initialValue, 0};
  if (const DispatchRun *writer = findDispatch(store.cells[size_t(cell)].writer)) {
    const AccessSite &access = writer->program->accesses[store.cells[size_t(cell)].write.site];
    const Binding &binding = writer->bindings[access.binding];
    holder = {binding.value, binding.begin};
  }
  int64_t byte = cell << store.shift;
  for (auto [number, operand] : insertions)
    if (&store == &stores[size_t(operand->allocation)] && operand->offset <= byte &&
        byte < operand->offset + operand->bytes && holder.value == operand->before &&
        holder.begin == operand->offset - operand->from &&
        (!dispatch || order.isOrdered(number, *dispatch)))
      holder.value = operand->value;
  return holder;
}

/// Makes `dispatch` the reader stored in the cell itself. Readers not ordered before it stay in
/// the list.
void Machine::makeReader(Cell &cell, const DispatchRun &dispatch) {
  if (cell.reader == dispatch.serial)
    return;
  const DispatchRun *before = findDispatch(cell.reader);
  if (!before)
    cell.others = 0; // list of an earlier run
  for (uint32_t i = cell.others; i; i = readers[i].next)
    if (readers[i].dispatch == dispatch.serial) {
      std::swap(readers[i].dispatch, cell.reader);
      std::swap(readers[i].reads, cell.reads);
      return;
    }
  if (before && !order.isOrdered(before->number, dispatch.number)) {
    readers.push_back({cell.reader, {cell.reads[0], cell.reads[1]}, cell.others});
    cell.others = uint32_t(readers.size() - 1);
  }
  cell.reader = dispatch.serial;
  cell.reads[0] = cell.reads[1] = {};
}

void Machine::checkLife(DispatchRun &dispatch, uint32_t operand, int64_t cell, const Touch &touch) {
  const Binding &binding = dispatch.bindings[operand];
  const Store &store = *binding.store;
  bool isWrite = dispatch.program->accesses[touch.site].isWrite;
  reports.add(ReportKind::Dead, {int64_t(dispatch.number), operand, -2, isWrite}, [&] {
    return "dead: " + describe(dispatch) + ", " + describe(dispatch, touch) + ", " +
           (isWrite ? "writes " : "reads ") + describeByte(store, cell << store.shift) +
           ", operand " + std::to_string(operand) + ", which is in no slot that is live in wave " +
           std::to_string(dispatch.command->wave);
  });
}

void Machine::checkContents(DispatchRun &dispatch, uint32_t operand, int64_t cell,
                            const Touch &touch) {
  const Binding &binding = dispatch.bindings[operand];
  const Store &store = *binding.store;
  const Cell &state = store.cells[size_t(cell)];
  Holder holder = findHolder(store, cell, dispatch.number);
  if (binding.value < 0 || (holder.value == binding.value && holder.begin == binding.begin))
    return;
  const DispatchRun *writer = findDispatch(state.writer);
  auto describeRead = [&] {
    return describe(dispatch) + ", " + describe(dispatch, touch) + ", reads " +
           describeByte(store, cell << store.shift);
  };
  if (holder.value < 0 && !writer) {
    reports.add(ReportKind::NeverWritten, {int64_t(dispatch.number), operand, -1, 0}, [&] {
      return "never written: " + describeRead() + " as " + describeValue(binding.value) +
             ", which nothing wrote in this run";
    });
    return;
  }
  reports.add(ReportKind::Dead,
              {int64_t(dispatch.number), operand, writer ? int64_t(writer->number) : -1, 0}, [&] {
                bool isSame = holder.value == binding.value;
                return "dead: " + describeRead() + " as " + describeValue(binding.value) +
                       ", which holds " + (isSame ? "other bytes of " : "") +
                       describeValue(holder.value) +
                       (writer ? " since " + describe(*writer) + ", " +
                                     describe(*writer, state.write) + ", wrote it"
                               : "");
              });
}

bool Machine::checkRead(DispatchRun &dispatch, uint32_t operand, int64_t number, const Now &touch) {
  const Binding &binding = dispatch.bindings[operand];
  Store &store = *binding.store;
  Cell &cell = store.cells[size_t(number)];
  bool isThere = true;
  if (cell.writer == dispatch.serial) {
    if (doRace(*dispatch.program, cell.write, touch))
      reportInside(dispatch, cell.write, touch, number << store.shift, &store);
    else if (dispatch.program->accesses[cell.write.site].binding != operand)
      checkContents(dispatch, operand, number, touch);
  } else if (DispatchRun *writer = findDispatch(cell.writer)) {
    bool isOrdered = order.isOrdered(writer->number, dispatch.number);
    if (isOrdered &&
        order.isVisible(writer->number, dispatch.number, operand, number << store.shift)) {
      checkContents(dispatch, operand, number, touch);
    } else {
      reportPair(isOrdered ? ReportKind::Invisible : ReportKind::Race, *writer, cell.write,
                 dispatch, touch, store, number);
      isThere = strategy == SimStrategy::LatestFirst || strategy == SimStrategy::WriterFirst ||
                (strategy == SimStrategy::Random && random() % 2);
    }
  } else {
    checkContents(dispatch, operand, number, touch);
  }
  if (!binding.isLive)
    checkLife(dispatch, operand, number, touch);

  if (dispatch.program->accesses[touch.site].isReadOnly) {
    store.readOnly[size_t(number)] = dispatch.serial;
    if (cell.writer == dispatch.serial)
      reportReadOnly(dispatch, cell.write, number << store.shift, store);
  }
  makeReader(cell, dispatch);
  if (const Touch *atomic = findRace(*dispatch.program, cell.reads, touch))
    reportInside(dispatch, *atomic, touch, number << store.shift, &store);
  cell.addRead(touch);
  return isThere;
}

void Machine::checkWrite(DispatchRun &dispatch, uint32_t operand, int64_t number,
                         const Now &touch) {
  const Binding &binding = dispatch.bindings[operand];
  Store &store = *binding.store;
  Cell &cell = store.cells[size_t(number)];
  int64_t byte = number << store.shift;
  const Program &program = *dispatch.program;
  if (program.hasReadOnly && store.readOnly[size_t(number)] == dispatch.serial)
    reportReadOnly(dispatch, touch, byte, store);
  if (cell.writer == dispatch.serial) {
    if (doRace(program, cell.write, touch))
      reportInside(dispatch, cell.write, touch, byte, &store);
  } else {
    if (DispatchRun *writer = findDispatch(cell.writer)) {
      bool isOrdered = order.isOrdered(writer->number, dispatch.number);
      if (!isOrdered || !order.isVisible(writer->number, dispatch.number, operand, byte))
        reportPair(isOrdered ? ReportKind::Invisible : ReportKind::Race, *writer, cell.write,
                   dispatch, touch, store, number);
    }
    // Other dispatches may still read the old bytes: keep them as stale.
    int64_t bytes = std::min(int64_t(1) << store.shift, store.bytes - byte);
    std::memcpy(&store.stale[size_t(byte)], &store.values[size_t(byte)], size_t(bytes));
  }
  auto checkReader = [&](uint32_t serial, const Touch *reads) {
    const DispatchRun &reader = *findDispatch(serial);
    if (&reader != &dispatch) {
      if (!order.isOrdered(reader.number, dispatch.number))
        reportPair(ReportKind::Race, reader, reads[0], dispatch, touch, store, number);
    } else if (const Touch *read = findRace(program, reads, touch)) {
      reportInside(dispatch, *read, touch, byte, &store);
    }
  };
  if (findDispatch(cell.reader)) {
    checkReader(cell.reader, cell.reads);
    for (uint32_t i = cell.others; i; i = readers[i].next)
      checkReader(readers[i].dispatch, readers[i].reads);
  }
  if (!store.isWritable)
    reports.add(ReportKind::ReadOnly, {int64_t(dispatch.number), operand, 0, 0}, [&] {
      return "read-only: " + describe(dispatch) + ", " + describe(dispatch, touch) + ", writes " +
             describeByte(store, byte) + ", which is not donated";
    });
  if (!binding.isLive)
    checkLife(dispatch, operand, number, touch);
  const bool isAtomic = program.accesses[touch.site].isAtomic();
  // An access may race with a plain write but not with an atomic one after it: keep the plain
  // one.
  if (!isAtomic || cell.writer != dispatch.serial || program.accesses[cell.write.site].isAtomic())
    cell.write = touch;
  cell.writer = dispatch.serial;
  cell.others = 0;
  if (isAtomic) {
    makeReader(cell, dispatch);
    cell.addRead(touch);
  }
  if (cell.reader == dispatch.serial)
    return; // already reported: accesses that race with this write race with its reads, too
  cell.reader = 0;
  cell.reads[0] = cell.reads[1] = {};
}
