//===- NotesTest.cpp - Notes, written and read back -----------------------===//

#include "Sample.h"

#include "gtest/gtest.h"

using namespace weir;
using namespace weir::test;

/// Returns the error's sentence, or "" when the text is read.
static std::string getNotesError(const std::string &text) {
  try {
    parseNotes(text, "n.json");
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

static Notes makeNotes() {
  EntryNotes entry;
  entry.entry = "main";
  entry.memoryLimit = 4096;
  entry.kernels = {{{"map: mulf", "m.py:1"}, {"map: addf", "</script>"}}, {}};
  entry.apart = {{0, 1, "they differ"}};
  entry.dispatchKernels = {0, 0, 1, -1, 1};
  entry.refusals = {{2, "live-reader", "", "m.py:1"}};
  return {{entry}};
}

TEST(Notes, read_back_as_printed) {
  EXPECT_EQ(parseNotes(printNotes(makeNotes()), "n.json"), makeNotes());
  EXPECT_EQ(parseNotes(printNotes({}), "n.json"), Notes());
  // Equal texts stand once.
  std::string text = printNotes(makeNotes());
  EXPECT_EQ(text.find("m.py:1"), text.rfind("m.py:1"));
}

TEST(Notes, refused) {
  const std::string text = printNotes(makeNotes());
  struct {
    const char *from, *to, *error;
  } edits[] = {
      {"\"schema_version\": 7", "\"schema_version\": 8", "schema_version"},
      {"[0,1,4]", "[0,2,4]", "apart[0][1]"},
      {"[0,1,4]", "[0,1,99]", "apart[0][2]"},
      {"[0,1,4]", "[0,1]", "3 elements"},
      {"[0,0,1,-1,1]", "[0,0,1,-2,1]", "dispatches[3]"},
      {"[0,0,1,-1,1]", "[0,0,2,-1,1]", "dispatches[2]"},
      {"\"memory_limit\":4096", "\"memory_limit\":-1", "memory_limit"},
      {"\"memory_limit\":4096", "\"memory\":4096", "unknown key"},
      {"\"entry\":\"main\"", "\"entry\":\"../main\"", "cannot name a file"},
      {"\"they differ\"", "7", "must be a string"},
  };
  for (const auto &edit : edits) {
    SCOPED_TRACE(edit.to);
    size_t at = text.find(edit.from);
    ASSERT_NE(at, std::string::npos) << text;
    std::string error =
        getNotesError(std::string(text).replace(at, std::string(edit.from).size(), edit.to));
    EXPECT_NE(error.find(edit.error), std::string::npos) << "got: " << error;
  }
  EXPECT_EQ(getNotesError(text), "");
}

TEST(Notes, are_of_an_artifact) {
  TemporaryFolder folder;
  Artifact artifact = makeSample();
  artifact.notes["vulkan"] = makeNotes();
  writeArtifact(folder / "a.weir", artifact);
  EXPECT_EQ(readArtifact(folder / "a.weir").notes, artifact.notes);
  EXPECT_NE(artifact.findNotes("main", "vulkan"), nullptr);
  EXPECT_EQ(artifact.findNotes("main", "cuda"), nullptr);
  // Neither another target's nor another entry's.
  Artifact other = makeSample();
  other.notes["cuda"] = makeNotes();
  EXPECT_THROW(writeArtifact(folder / "b.weir", other), Error);
  other = makeSample();
  other.notes["vulkan"] = makeNotes();
  other.notes["vulkan"].entries[0].entry = "else";
  EXPECT_THROW(writeArtifact(folder / "b.weir", other), Error);
  Files files = readArchive(folder / "a.weir");
  files["notes/cuda.json"] = files["notes/vulkan.json"];
  writeArchive(folder / "b.weir", files);
  EXPECT_THROW(readArtifact(folder / "b.weir"), Error);
}
